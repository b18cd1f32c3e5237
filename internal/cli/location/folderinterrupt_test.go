package location

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// An interrupted command does not read the rest of a folder.
func TestFolderIsNotReadAfterAnInterrupt(t *testing.T) {
	dir := t.TempDir()
	for i := range 500 {
		text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m%d}\n", i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("m%d.yaml", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if folder, err := (FolderFlags{}).Read(t.Context(), dir, xpkg.Limits{}); err != nil || len(folder.Documents) != 500 {
		t.Fatalf("the folder was not read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (FolderFlags{}).Read(ctx, dir, xpkg.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
