package tokens_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// A token that cannot be stored has the remedy for the folder, and not that for its permissions.
func TestATokenThatCannotBeStored(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	scope := access.Scope{Repositories: []string{"*"}, Actions: []access.Action{access.Read}}
	_, _, err := tokens.Open(filepath.Join(file, "registry"), nil).Create("admin", "", scope, time.Hour)
	if err == nil || !strings.Contains(errcode.From(err).Do, "is a file and not a directory") {
		t.Errorf("the error is %v, and advises %q", err, errcode.From(err).Do)
	}
}
