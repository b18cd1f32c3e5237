package operation

import (
	"slices"

	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Known returns the codes of the program, by which the codes in conditions of packages and in statuses of transactions
// are found. The program sets it when it starts, because this package must not depend on all others.
var Known = func() []errcode.Code { return slices.Concat(Codes(), inventory.Codes(), apiserver.Codes()) }

// codeNamed returns the code with a name, and false if there is none.
func codeNamed(name string) (errcode.Code, bool) {
	for _, c := range Known() {
		if c.Name == name {
			return c, true
		}
	}
	return errcode.Code{}, false
}
