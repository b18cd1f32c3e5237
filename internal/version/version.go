// Package version contains the version of the program.
package version

// Version is the version of the program, set by the linker.
var Version = "v0.0.0-dev"
