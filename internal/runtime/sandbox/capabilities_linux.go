package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/filetree"
)

// capabilities are the isolation features that the machine allows.
type capabilities struct {
	kind kind
	// why is the reason why no stronger isolation is possible.
	why error
	// overlay and proc are the reasons why an overlay or /proc cannot be mounted in a
	// namespace, or nil if they can be mounted.
	overlay, proc error
}

// String returns the isolation for a status.
func (g *capabilities) String() string {
	switch {
	case g.kind == inNamespaces && g.proc != nil:
		return fmt.Sprintf("namespaces, without /proc: %v", g.proc)
	case g.kind == inNamespaces:
		return "namespaces"
	case g.kind == inChroot:
		return fmt.Sprintf("chroot: %v", g.why)
	}
	return fmt.Sprintf("none: %v", g.why)
}

// errRequested is the reason for less isolation than the machine allows.
var errRequested = errors.New("it was asked for")

// detect probes the isolation that the machine allows. The supervisor uses the result for its
// lifetime.
func (s *launcher) detect(ctx context.Context) (*capabilities, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.capabilities != nil {
		return s.capabilities, nil
	}
	g, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	if s.capabilities = g; g.kind != inNamespaces {
		s.opts.Log.Warn("package runtimes are not isolated from this machine: "+g.String(),
			"what to do", "allow unprivileged user namespaces, and install only packages that you trust until then")
	}
	return g, nil
}

func (s *launcher) find(ctx context.Context) (*capabilities, error) {
	g := &capabilities{kind: inNamespaces, why: errRequested}
	if s.opts.Isolation == Namespaces {
		if g.why = s.findNamespaces(ctx, g); g.why == nil || ctx.Err() != nil {
			return g, context.Cause(ctx)
		}
	}
	g.kind = asItIs
	if s.opts.Isolation < None && os.Geteuid() == 0 {
		g.kind = inChroot
		if err := s.try(ctx, g); err != nil {
			g.kind, g.why = asItIs, fmt.Errorf("%w, and %w", g.why, err)
		}
	}
	return g, context.Cause(ctx)
}

// findNamespaces tries a sandbox in namespaces, without the features that the machine forbids in
// them. It records these features in g.
func (s *launcher) findNamespaces(ctx context.Context, g *capabilities) error {
	for {
		err := s.try(ctx, g)
		var failed *stageError
		switch {
		case !errors.As(err, &failed):
			if err != nil {
				return explain(err)
			}
			return nil
		case failed.stage == stageOverlay && g.overlay == nil:
			g.overlay = err
		case failed.stage == stageProc && g.proc == nil:
			g.proc = err
		default:
			return err
		}
	}
}

// explain returns an error with the reason why namespaces are not available, for administrators.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return errors.New("cannot create namespaces: the setting user.max_user_namespaces does not allow it")
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return errors.New("cannot create namespaces: this machine forbids them to this user")
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOSYS):
		return errors.New("cannot create namespaces: the kernel does not have them")
	}
	return fmt.Errorf("cannot create namespaces: %w", err)
}

// try prepares a sandbox without starting a runtime in it.
func (s *launcher) try(ctx context.Context, g *capabilities) error {
	dir, err := os.MkdirTemp(filepath.Join(s.opts.Dir, programsFolder), ".try-")
	if err != nil {
		return err
	}
	defer func() { _ = filetree.Remove(dir) }() // The next supervisor removes the rest.
	what, attr := s.plan(g, dir)
	what.Probe, what.Name = true, "probe"
	lower := filepath.Join(dir, "lower")
	err = filetree.Mkdir(lower, 0o755)
	if err == nil && g.kind == inNamespaces && g.overlay == nil {
		err = what.overlay(lower, dir, defaultMemory)
	} else if err == nil {
		err = filetree.Mkdir(what.Root, 0o755)
	}
	if err != nil {
		return err
	}
	child, _, err := s.begin(ctx, what, attr, io.Discard)
	if err != nil {
		return err
	}
	child.terminate(false)
	return nil
}
