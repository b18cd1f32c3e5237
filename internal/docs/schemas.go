package main

import (
	"io"
	"reflect"

	"github.com/xpkg-dev/xpkg/internal/jsonschema"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// planFile is the content of a file of `xpkg plan --out`.
type planFile struct {
	planner.Plan
	Digest string `json:"digest"`
}

// lockFile is the content of a lock file.
type lockFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	lockfile.File
}

// schemaPage returns a function that writes the JSON schema of a type, whose apiVersion and kind are constant if they
// are not empty.
func schemaPage[T any](title, description, apiVersion, kind string) func(io.Writer) error {
	return func(w io.Writer) error {
		s, err := jsonschema.Of(reflect.TypeFor[T](), title, description)
		if err != nil {
			return err
		}
		if apiVersion != "" {
			s.Properties["apiVersion"].Const, s.Properties["kind"].Const = apiVersion, kind
		}
		return s.Write(w)
	}
}

// schemas returns the JSON schemas of files that other programs read.
func schemas() map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{
		"schemas/plan.json": schemaPage[planFile](
			"Plan", "A plan of xpkg plan --out, and the output of xpkg plan -o json except for the digest.", planner.APIVersion,
			planner.Kind,
		),
		"schemas/lock.json": schemaPage[lockFile](
			"PackageLock", "A lock file of xpkg resolve --lock.", lockfile.APIVersion, lockfile.Kind,
		),
		"schemas/index.json": schemaPage[catalog.Config](
			"Index", "The configuration of an index, which is the config of its OCI manifest.", "", "",
		),
	}
}
