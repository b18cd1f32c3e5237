// Package descriptors prevents child processes from inheriting the file descriptors that
// this process has inherited.
package descriptors

// FirstInherited is the first descriptor after standard input, output and error.
const FirstInherited = 3
