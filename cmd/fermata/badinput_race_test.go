//go:build race

package main

// shorter is by how much the long texts of tests are shortened: the race detector makes a daemon twenty times slower where
// it looks at each byte.
const shorter = 4
