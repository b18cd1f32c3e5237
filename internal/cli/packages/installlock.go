package packages

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// installLock installs the packages of a lock file in dependency order, so that each can become healthy.
func (c *installArgs) installLock(env *terminal.Env, r review, flags planFlags, file string) error {
	if c.Kind != "" || c.Ref != "" || c.RequiredKind != "" {
		return terminal.ErrUsage.New(nil, "a package and --lock cannot be used together").WithDo("Remove one of them.")
	}
	if c.AllowWebhooks {
		return terminal.ErrUsage.New(nil, "--allow-webhooks cannot be used with --lock").
			WithDo("Install the lock file without it, and allow the webhooks of a package that waits with `xpkg approve`.")
	}
	f, err := dependencies.ReadClosure(env, file)
	if err != nil {
		return err
	}
	return r.change(env, flags, func(pl *clusterPlanner, all *inventory.Inventory) ([]*operation.Step, error) {
		steps, err := operation.LockSteps(all, f, c.configure)
		if err == nil {
			warnOfTags(env, pl, steps)
		}
		return steps, err
	})
}

const (
	tagsAtOnce = 8
	// tagLimit bounds the time for checks of tags. They are only informative, because digests are installed.
	tagLimit = 10 * time.Second
)

// warnOfTags prints a note for each package to install whose tag does not refer to the locked digest. It does
// not report a registry that does not respond.
func warnOfTags(env *terminal.Env, pl *clusterPlanner, steps []*operation.Step) {
	notes := make([]string, len(steps))
	eachTag(env, pl, steps, func(i int, _ *operation.Step, err error) {
		if errors.Is(err, versions.ErrLockTag) {
			notes[i] = errcode.From(err).What
		}
	})
	view.Notes(env.Stderr, notes...)
}

// eachTag calls found with each step that selects a content, concurrently, and with an error if the tag of its
// reference does not refer to the digest: LockTagMismatch, or that of a registry that does not respond.
func eachTag(env *terminal.Env, pl *clusterPlanner, steps []*operation.Step, found func(int, *operation.Step, error)) {
	ctx, cancel := context.WithTimeout(env.Context, tagLimit)
	defer cancel()
	finder := origin.Finder{Reader: pl.Client, Namespace: pl.Namespace}
	var group errgroup.Group
	group.SetLimit(tagsAtOnce)
	for i, s := range steps {
		if s.Same || s.Remove {
			continue
		}
		spec := s.Want.PackageSpec()
		ref, err := oci.ParseReference(spec.Package, oci.ParseOptions{})
		if err != nil || !revision.MayPull(spec.PackagePullPolicy) {
			continue
		}
		group.Go(func() error {
			found(i, s, versions.CheckTag(ctx, pl.source, func(ctx context.Context, ref oci.Reference) (fetch.Origin, error) {
				o, _, err := finder.Locate(ctx, ref.String(), spec.PackagePullSecrets, spec.PackagePullPolicy)
				return o, err
			}, ref))
			return nil
		})
	}
	_ = group.Wait() // The functions return no error.
}
