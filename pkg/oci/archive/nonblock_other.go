//go:build !unix

package archive

// openNonblock has no equivalent here, and directories contain no named pipes.
const openNonblock = 0
