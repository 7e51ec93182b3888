//go:build unix

package tools

const argBytes = 512 << 10 // of file names in the arguments of one program
