package operation

import (
	"os"
	"slices"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

func TestMain(m *testing.M) {
	own := Known
	Known = func() []errcode.Code { return slices.Concat(own(), errcodes.All()) }
	os.Exit(m.Run())
}
