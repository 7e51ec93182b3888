//go:build !race

package main

// shorter is by how much the long texts of tests are shortened.
const shorter = 1
