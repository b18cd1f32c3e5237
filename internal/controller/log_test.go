package controller

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// TestLevelOfFailures checks that a package that waits for another one or for a user is no error of the manager.
func TestLevelOfFailures(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{errors.New("broken"), "level=ERROR"},
		{graph.ErrDependencyVersion.New(nil, "waits"), "level=INFO"},
		{graph.ErrDependencyComing.New(nil, "waits"), "level=INFO"},
		{apply.ErrNeedsAdoption.New(nil, "waits"), "level=INFO"},
		{remote.ErrRegistryUnavailable.New(nil, "down"), "level=WARN"},
	} {
		var out bytes.Buffer
		log := logr.FromSlogHandler(untilDone{slog.NewTextHandler(&out, nil), nil})
		log.Error(tc.err, "Reconciler error")
		if got := out.String(); !strings.Contains(got, tc.want) || !strings.Contains(got, tc.err.Error()) {
			t.Errorf("%v: want %s, logged %s", tc.err, tc.want, got)
		}
		out.Reset()
		logr.FromSlogHandler(untilDone{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}), nil}).
			Error(tc.err, "Reconciler error")
		if logged := out.Len() > 0; logged != (tc.want == "level=ERROR") {
			t.Errorf("%v: logged above its level: %s", tc.err, &out)
		}
	}
}

func TestUntilDone(t *testing.T) {
	var out bytes.Buffer
	done := make(chan struct{})
	log := logr.FromSlogHandler(untilDone{slog.NewTextHandler(&out, nil), done}).V(1).WithName("library").
		WithValues("a", "b")
	log.Info("detail")
	log.Error(errors.New("broken"), "before the stop")
	close(done)
	log.Error(errors.New("broken"), "after the stop")
	got := out.String()
	if strings.Contains(got, "detail") || strings.Contains(got, "after the stop") ||
		!strings.Contains(got, "before the stop") {
		t.Errorf("logged:\n%s", got)
	}
	if !strings.Contains(got, "a=b") || !strings.Contains(got, "logger=library") {
		t.Errorf("attributes are lost:\n%s", got)
	}
}
