package controller_test

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Tests wait more than they work, so more of them run at once than there are processors. Most of
// them wait for an API server of their own.
const concurrency = "64"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", concurrency); err != nil {
		panic(err)
	}
	// As in the program, transactions know all codes in conditions.
	known := slices.Concat(operation.Known(), errcodes.All())
	operation.Known = func() []errcode.Code { return known }
	code := m.Run()
	shared.end()
	os.Exit(code)
}
