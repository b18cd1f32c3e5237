package registry_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Two servers on one folder would lose versions that both have acknowledged.
func TestAFolderHasOneServer(t *testing.T) {
	first := start(t, nil)
	other := registry.Options{Dir: first.dir, Host: host}
	if s, err := registry.New(other); !errors.Is(err, registry.ErrServer) {
		t.Fatalf("a second server on the folder: %v, %v", s, err)
	} else if do := errcode.From(err).Do; !strings.Contains(do, "--dir") {
		t.Errorf("the remedy %q does not name the flag", do)
	}
	first.stop()
	s, err := registry.New(other)
	if err != nil {
		t.Fatalf("a server after the first one was stopped: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
