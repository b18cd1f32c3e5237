package dependencies

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// Codes for lock files.
var (
	ErrLockNotFound = errcode.Code{
		Name: "LockNotFound", Class: errcode.NotFound,
		Cause: "The lock file does not exist or cannot be read.",
		Fix:   "Create it with `xpkg resolve --lock xpkg.lock`.",
	}
	ErrLockWrite = errcode.Code{
		Name: "LockWrite", Class: errcode.Usage,
		Cause: "The lock file cannot be written.",
		Fix:   "Use a file in an existing folder that is writable.",
	}
	ErrNotLocked = errcode.Code{
		Name: "NotLocked", Class: errcode.NotFound,
		Cause: "The name matches no resolved package, or more than one.",
		Fix:   "Use the full repository; `xpkg tree` lists the packages.",
	}
)

// readLock reads a lock file, from standard input if its name is "-". Without a name the
// result is empty.
func readLock(env *terminal.Env, file string) (lockfile.File, error) {
	if file == "" {
		return lockfile.File{}, nil
	}
	raw, err := env.ReadInput(file)
	if err != nil {
		failed := ErrLockNotFound.New(err, "cannot read the lock file")
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			return lockfile.File{},
				failed.WithDo("%s is a folder: name a lock file in it, such as %s.", file, filepath.Join(file, "xpkg.lock"))
		}
		return lockfile.File{}, failed.WithDo(
			"Check the path, or create the file with `xpkg resolve --lock %s` in the folder of a package.",
			wording.ShellWord(file),
		)
	}
	return parseLock(file, raw)
}

// readPreviousLock reads the lock file that the command replaces. The result is empty if
// there is no such file, or if file names standard output or a device.
func readPreviousLock(env *terminal.Env, file string) (lockfile.File, error) {
	info, err := os.Stat(file)
	switch {
	case file == "" || fileutil.IsStdout(file) || errors.Is(err, fs.ErrNotExist):
		return lockfile.File{}, nil
	case errors.Is(err, syscall.ENOTDIR):
		return lockfile.File{}, ErrLockWrite.New(nil, "cannot write %s: %s is not a directory", file, filepath.Dir(file))
	case err == nil && !info.Mode().IsRegular() && !info.IsDir():
		return lockfile.File{}, nil
	}
	raw, err := env.ReadInput(file)
	if err != nil {
		return lockfile.File{}, ErrLockNotFound.New(err, "cannot read the lock file")
	}
	return parseLock(file, raw)
}

func parseLock(file string, raw []byte) (lockfile.File, error) {
	f, err := lockfile.Parse(raw)
	if err != nil {
		x := errcode.From(err)
		return lockfile.File{}, x.Code.New(x.Why, "%s: %s", file, x.What).WithDo("%s", x.Do)
	}
	return f, nil
}

// ReadClosure reads a lock file, and checks that its versions satisfy all constraints.
func ReadClosure(env *terminal.Env, file string) (lockfile.File, error) {
	f, err := readLock(env, file)
	if err != nil {
		return f, err
	}
	if problems := f.Problems(); len(problems) > 0 {
		return f, ErrLockStale.New(errors.New(strings.Join(problems, "; ")), "the dependencies in %s are inconsistent", file)
	}
	return f, nil
}

// writeLock writes a lock file, unless the file already has this content.
func writeLock(env *terminal.Env, file string, f lockfile.File) error {
	raw := lockfile.Encode(f)
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
		if is, err := env.ReadInput(file); err == nil && string(is) == string(raw) {
			return nil
		}
	}
	return env.WriteOutput(file, ErrLockWrite, func(w io.Writer) error {
		_, err := w.Write(raw)
		return err
	})
}

// findLocked returns the package that a name matches. The name must match exactly one.
func findLocked(f lockfile.File, name string) (lockfile.Package, error) {
	found := f.Match(name)
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) == 0 {
		failed := ErrNotLocked.New(nil, "the package %s does not exist", name)
		if alike := spelling.AlikeReferences(name, repositories(f)); len(alike) > 0 {
			return lockfile.Package{}, failed.WithDo("Did you mean %s? %s", strings.Join(alike, " or "), ErrNotLocked.Fix)
		}
		return lockfile.Package{}, failed
	}
	var names []string
	for _, p := range found {
		names = append(names, p.Repository)
	}
	return lockfile.Package{}, ErrNotLocked.New(nil, "%s can be %s", name, strings.Join(names, " or "))
}

// repositories returns the repositories of all packages, for suggestions.
func repositories(f lockfile.File) []string {
	var out []string
	for _, p := range f.Packages {
		out = append(out, p.Repository)
	}
	return out
}

// writeLockChanges writes the changes of a lock file.
func writeLockChanges(w io.Writer, file string, before, after lockfile.File) {
	changes := lockChanges(before, after)
	for _, c := range changes {
		fmt.Fprintln(w, terminal.Safe(c))
	}
	word := "unchanged"
	if len(changes) > 0 || string(lockfile.Encode(before)) != string(lockfile.Encode(after)) {
		word = "written"
	}
	fmt.Fprintf(w, "%s %s: %s\n", terminal.Safe(file), word, wording.Count(len(after.Packages), "package"))
}

// lockChanges returns the differences between two files, with one line for each package,
// ordered by repository.
func lockChanges(before, after lockfile.File) []string {
	var out []string
	for _, p := range after.Packages {
		switch was, ok := before.Find(p.Repository); {
		case !ok:
			out = append(out, fmt.Sprintf("added    %s %s", p.Repository, p.ShortVersion()))
		case was.ShortVersion() != p.ShortVersion():
			text := fmt.Sprintf("changed  %s %s -> %s", p.Repository, was.ShortVersion(), p.ShortVersion())
			if len(was.Signers) > 0 && !slices.Equal(was.Signers, p.Signers) {
				text += ", signed by " + signersOf(p)
			}
			out = append(out, text)
		case was.Digest != p.Digest:
			out = append(out, fmt.Sprintf(
				"moved    %s %s: the tag referred to %s and refers to %s", p.Repository, p.ShortVersion(), was.Digest.Short(),
				p.Digest.Short(),
			))
		case len(was.Signers) > 0 && !slices.Equal(was.Signers, p.Signers):
			out = append(out, fmt.Sprintf("signed   %s %s by %s", p.Repository, p.ShortVersion(), signersOf(p)))
		}
	}
	for _, p := range before.Packages {
		if _, ok := after.Find(p.Repository); !ok {
			out = append(out, fmt.Sprintf("removed  %s %s", p.Repository, p.ShortVersion()))
		}
	}
	return out
}
