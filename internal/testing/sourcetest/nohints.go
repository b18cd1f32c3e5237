package sourcetest

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// NoHints is the part of a [fetch.Lookup] that predicts nothing, for lookups of tests.
type NoHints struct{}

// Dependencies implements [fetch.Lookup].
func (NoHints) Dependencies(context.Context, string, string) []dependency.Dependency { return nil }

// Remember implements [fetch.Lookup].
func (NoHints) Remember(context.Context, []lockfile.Package) {}
