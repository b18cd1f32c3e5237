package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// TestAFullDeviceIsNoFaultOfTheCommandLine checks the code of failures because of a full device, and of the same errors
// of other limits of the system.
func TestAFullDeviceIsNoFaultOfTheCommandLine(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "/a", Err: syscall.ENOSPC}
	for name, c := range map[string]struct {
		err  error
		want errcode.Code
	}{
		"no code":         {fmt.Errorf("page: %w", full), archive.ErrCannotWrite},
		"quota":           {&os.LinkError{Op: "link", Old: "/a", New: "/b", Err: syscall.EDQUOT}, archive.ErrCannotWrite},
		"usage":           {terminal.ErrUsage.New(full, "cannot create the folder"), archive.ErrCannotWrite},
		"data directory":  {datadir.ErrUnusable.New(full, "cannot write"), archive.ErrCannotWrite},
		"cache":           {store.ErrStoreWrite.New(full, "cannot write"), store.ErrStoreWrite},
		"limit":           {syscall.ENOSPC, errcode.Unknown},
		"another failure": {&fs.PathError{Op: "write", Path: "/a", Err: syscall.EIO}, errcode.Unknown},
	} {
		var out bytes.Buffer
		got := classified(c.err)
		if exit := report(&out, c.err); got.Code.Name != c.want.Name || exit != c.want.Class.Exit || got.Do == "" {
			t.Errorf("%s: %s with the exit code %d, want %s\n%s", name, got.Code.Name, exit, c.want.Name, &out)
		}
	}
}
