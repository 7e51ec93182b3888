//go:build unix

package tools

const argBytes = 96 << 10 // of file names in the arguments of one program
