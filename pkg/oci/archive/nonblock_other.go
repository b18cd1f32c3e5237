//go:build !unix

package archive

// openNonblock has no equivalent here, and directories hold no named pipes.
const openNonblock = 0
