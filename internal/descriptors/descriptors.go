// Package descriptors keeps the file descriptors that a process has inherited from the
// processes that it starts.
package descriptors

// FirstInherited is the first descriptor after standard input, output and error.
const FirstInherited = 3
