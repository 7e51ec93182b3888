package tools

const argBytes = 16 << 10 // of file names in the arguments of one program
