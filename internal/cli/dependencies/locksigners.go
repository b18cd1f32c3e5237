package dependencies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// ErrLockSigner is the code for a version that others have signed than the locked one.
var ErrLockSigner = errcode.Code{
	Name: "LockSigner", Class: errcode.Untrusted,
	Cause: "The version that would be locked is not signed by the signers of the locked version.",
	Fix:   "Determine who has signed it, and why. To accept it, repeat the command with --allow-signer-change.",
}

// recordSigners records who has signed the packages of a lock file, as the ImageConfigs require. It fails with
// ErrLockSigner if a new version has other signers than the former one, or none although that had some: without a
// requirement, nothing would be known of it.
func (c *ResolveCmd) recordSigners(
	env *terminal.Env, r *rootResolver, before lockfile.File, after *lockfile.File,
) error {
	if len(c.ImageConfig) > 0 {
		if err := r.readSigners(env, after); err != nil {
			return err
		}
	}
	var problems []string
	for i := range after.Packages {
		is := &after.Packages[i]
		was, known := before.Find(is.Repository)
		switch {
		case !known || len(was.Signers) == 0 || slices.Equal(was.Signers, is.Signers):
		case was.Digest == is.Digest && len(is.Signers) == 0:
			is.Signers = was.Signers
		default:
			problems = append(problems, fmt.Sprintf(
				"%s %s is signed by %s, and %s by %s", is.Repository, was.ShortVersion(), signersOf(was), is.ShortVersion(),
				signersOf(*is),
			))
		}
	}
	if problems == nil || c.AllowSigner {
		return nil
	}
	failed := ErrLockSigner.New(errors.New(strings.Join(problems, "; ")), "the signers would change; %s is unchanged", c.Lock)
	if len(c.ImageConfig) == 0 {
		return failed.WithDo("Name the ImageConfigs that require the signatures with --image-config. %s", ErrLockSigner.Fix)
	}
	return failed
}

// checkSigners fails unless the packages of a frozen lock file are signed as the ImageConfigs require, by the signers
// in the file.
func (c *ResolveCmd) checkSigners(env *terminal.Env, locked lockfile.File) (err error) {
	if len(c.ImageConfig) == 0 {
		return nil
	}
	r, err := c.resolverFlags.open(env, nil)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, r)
	now := lockfile.File{Packages: slices.Clone(locked.Packages)}
	if err := r.readSigners(env, &now); err != nil {
		return err
	}
	for i, is := range now.Packages {
		if was := locked.Packages[i]; !slices.Equal(was.Signers, is.Signers) {
			return ErrLockStale.New(
				nil, "%s records that %s %s is signed by %s, but it is signed by %s", c.Lock, is.Repository, is.ShortVersion(),
				signersOf(was), signersOf(is),
			)
		}
	}
	return nil
}

// readSigners sets who has signed the packages.
func (r *rootResolver) readSigners(env *terminal.Env, f *lockfile.File) error {
	const readsAtOnce = 8
	p := terminal.StartTask(env.Stderr, "verifying the signatures of %s", wording.Count(len(f.Packages), "package"))
	defer p.End()
	return p.Each(env.Context, len(f.Packages), readsAtOnce, func(ctx context.Context, i int) error {
		locked := &f.Packages[i]
		o, err := r.locate(ctx, locked.Reference())
		if err != nil {
			return err
		}
		verdicts, err := r.content.Verify(ctx, o, locked.Digest, true)
		if err != nil {
			return err
		}
		locked.Signers = signature.Signers(verdicts)
		return nil
	})
}

// signersOf returns the signers of a package as text.
func signersOf(p lockfile.Package) string {
	if len(p.Signers) == 0 {
		return "no signer that is required here"
	}
	return strings.Join(p.Signers, " and ")
}
