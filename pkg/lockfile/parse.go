package lockfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Codes for lock files.
var (
	ErrInvalid = errcode.Code{
		Name: "LockInvalid", Class: errcode.Invalid,
		Cause: "The lock file was not written by xpkg: it is not valid YAML, or has invalid content.",
		Fix:   "Restore the file of the last commit, or remove it, and run xpkg resolve --lock again.",
	}
	ErrVersion = errcode.Code{
		Name: "LockVersion", Class: errcode.Unsupported,
		Cause: "This version of xpkg does not support the format of the lock file.",
		Fix:   "Use a newer xpkg, or rewrite the file with xpkg resolve --lock.",
	}
)

const (
	maxBytes    = 16 << 20
	maxPackages = 10_000
)

// Parse reads a lock file. The result is consistent: every package occurs once, with its digest, and every
// required dependency is locked; optional ones need not be. [File.Check] reports whether the versions satisfy
// the constraints.
func Parse(data []byte) (File, error) {
	if len(data) > maxBytes {
		return File{}, ErrInvalid.New(nil, "the lock file has %d bytes, at most %d are allowed", len(data), maxBytes)
	}
	if line := conflictLine(data); line > 0 {
		return File{}, ErrInvalid.New(nil, "there is a merge conflict at line %d of the lock file", line).
			WithDo("Keep either side of the merge, and run xpkg resolve --lock again, which adds missing packages.")
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(data, &head); err != nil {
		return File{}, ErrInvalid.New(withoutGoTypes(err), "cannot read the lock file")
	}
	if head.Kind != Kind {
		return File{}, ErrInvalid.New(fmt.Errorf("its kind is %.40q, want %s", head.Kind, Kind), "cannot read the lock file")
	}
	if head.APIVersion != APIVersion {
		return File{}, ErrVersion.New(nil, "the lock file is %.80q, want %s", head.APIVersion, APIVersion)
	}
	var doc struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		File       `json:",inline"`
	}
	if err := yaml.UnmarshalStrict(data, &doc); err != nil {
		return File{}, ErrInvalid.New(withoutGoTypes(err), "cannot read the lock file")
	}
	f := doc.File
	f.sort()
	if err := f.verify(); err != nil {
		return File{}, ErrInvalid.New(err, "the lock file is inconsistent")
	}
	return f, nil
}

// conflictLine returns the number of the first line with a merge conflict marker, and 0 if there is none.
func conflictLine(data []byte) int {
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if bytes.HasPrefix(text, []byte("<<<<<<< ")) {
			return line
		}
	}
	return 0
}

// withoutGoTypes describes a value of the wrong type without the names of Go types.
func withoutGoTypes(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("%s has the wrong type: %s", cmp.Or(strings.TrimPrefix(wrong.Field, "File."), "it"), wrong.Value)
}

// verify returns the inconsistencies of a file.
func (f *File) verify() error {
	if len(f.Packages) > maxPackages {
		return fmt.Errorf("it has %d packages, at most %d are allowed", len(f.Packages), maxPackages)
	}
	for i, p := range f.Packages {
		if i > 0 && f.Packages[i-1].Repository == p.Repository {
			return fmt.Errorf("%s occurs twice", p.Repository)
		}
		if err := f.verifyPackage(p); err != nil {
			return err
		}
	}
	for _, r := range f.Roots {
		if err := verifyKind(r.CRD); err != nil {
			return err
		}
		if err := f.present(r.Package); err != nil && !r.Optional {
			return fmt.Errorf("a root names %w", err)
		}
	}
	return f.verifyProvides()
}

// verifyProvides checks that only one package provides each kind.
func (f *File) verifyProvides() error {
	by := map[dependency.KindRef]string{}
	for _, p := range f.Packages {
		for _, k := range p.Provides {
			if other, ok := by[k]; ok {
				return fmt.Errorf("%s and %s both provide %s", other, p.Repository, k)
			}
			by[k] = p.Repository
		}
	}
	return nil
}

// verifyKind checks the text of a required kind, which can be empty.
func verifyKind(text string) error {
	if text == "" {
		return nil
	}
	_, err := dependency.ParseKindRef(text)
	return err
}

func (f *File) verifyPackage(p Package) error {
	ref, err := oci.ParseReference(p.Repository, oci.ParseOptions{AllowUntagged: true})
	switch {
	case err != nil:
		return err
	case ref.Name() != p.Repository:
		return fmt.Errorf("%q is not the repository of a package, such as %s", p.Repository, ref.Name())
	case p.Digest.IsZero():
		return fmt.Errorf("%s has no digest", p.Repository)
	}
	if again, err := oci.ParseReference(p.Reference().String(), oci.ParseOptions{}); err != nil || again != p.Reference() {
		return errors.Join(fmt.Errorf("%s cannot have the version %q", p.Repository, p.Version), err)
	}
	switch p.Kind {
	case xpkg.Provider, xpkg.Configuration, xpkg.Function:
	default:
		return fmt.Errorf("%s cannot have the kind %q", p.Repository, p.Kind)
	}
	for _, d := range p.Dependencies {
		if err := verifyKind(d.CRD); err != nil {
			return err
		}
		if err := f.present(d.Package); err != nil && !d.Optional {
			return fmt.Errorf("%s needs %w", p.Repository, err)
		}
	}
	return nil
}

func (f *File) present(repository string) error {
	if _, ok := f.Find(repository); !ok {
		return fmt.Errorf("%q, which is not among the packages", repository)
	}
	return nil
}
