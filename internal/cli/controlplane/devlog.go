package controlplane

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/logs"
)

// revisionLogs prints the logs of the revisions of a package: each from its start, and those of before from their ends.
type revisionLogs struct {
	// dir is the directory in which the control plane runs package runtimes.
	dir    string
	out    io.Writer
	opened map[string]io.ReadCloser
}

// skip moves to the ends of the logs of revisions.
func (l *revisionLogs) skip(ctx context.Context, revisions []string) error {
	for _, revision := range revisions {
		if err := l.open(ctx, revision, 0); err != nil {
			return err
		}
	}
	return nil
}

// print prints all lines that are new. It opens the log of the active revision, if that has one.
func (l *revisionLogs) print(ctx context.Context, active string) error {
	if active != "" {
		if err := l.open(ctx, active, -1); err != nil {
			return err
		}
	}
	for _, revision := range slices.Sorted(maps.Keys(l.opened)) {
		log, err := l.opened[revision], error(nil)
		if terminal.IsTerminal(l.out) {
			err = CopyText(l.out, log)
		} else {
			_, err = io.Copy(l.out, log)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open opens the log of a revision at its last lines, as [logs.Open] does, unless it is open or does not exist yet.
func (l *revisionLogs) open(ctx context.Context, revision string, tail int) error {
	if l.opened[revision] != nil {
		return nil
	}
	log, err := logs.Open(ctx, l.dir, revision, false, tail)
	if errors.Is(err, logs.ErrNoLog) {
		return nil
	}
	if err == nil {
		l.opened[revision] = log
	}
	return err
}

// close closes the logs.
func (l *revisionLogs) close() error {
	var errs []error
	for _, log := range l.opened {
		errs = append(errs, log.Close())
	}
	return errors.Join(errs...)
}
