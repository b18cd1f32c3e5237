package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrStillGoing is the failure of an uninstall that is not done in time.
var ErrStillGoing = failure.Register(failure.Code{
	Name: "NotRemovedInTime", Class: failure.Timeout,
	Cause: "The package or its objects were not gone in the time given with --wait.",
	Fix:   "The removal goes on. An object that stays has a finalizer that somebody must remove: look at it with kubectl.",
})

type uninstallCmd struct {
	Kind string        `arg:"" enum:"provider,configuration,function" help:"Kind of package: provider, configuration or function."`
	Name string        `arg:"" help:"Name of the package in the cluster."`
	Wait time.Duration `short:"w" placeholder:"2m" help:"Wait this long for the package and its objects to be gone."`
	clusterFlags
	outputFlag
}

// Run deletes a package; everything that it alone brought goes with it.
func (c *uninstallCmd) Run(env *Env) error {
	cluster, err := c.client()
	if err != nil {
		return err
	}
	p := v1.NewPackage(kindOf(c.Kind))
	kind := p.GetObjectKind().GroupVersionKind()
	err = cluster.Get(env.Context, client.ObjectKey{Name: c.Name}, p)
	if apierrors.IsNotFound(err) && !isNotServed(err) {
		return ErrPackageNotFound.New(nil, "no %s %s is installed", c.Kind, c.Name)
	}
	if err != nil {
		return classify(err, "read %s %s", c.Kind, c.Name)
	}
	p.GetObjectKind().SetGroupVersionKind(kind)
	uid, policy := p.GetUID(), metav1.DeletePropagationBackground
	if c.Wait > 0 {
		policy = metav1.DeletePropagationForeground
	}
	if err := cluster.Delete(env.Context, p, client.Preconditions{UID: &uid}, client.PropagationPolicy(policy)); client.IgnoreNotFound(err) != nil {
		return classify(err, "delete %s", shortName(p))
	}
	word := "deleted"
	if c.Wait > 0 {
		if err := c.gone(env, cluster, p); err != nil {
			return err
		}
		word = "gone"
	}
	return c.print(env.Stdout, clean(p), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s %s\n", shortName(p), word)
		return err
	})
}

// gone waits for the package. It is deleted in the foreground, so that it goes
// after its revisions, and they after their objects.
func (c *uninstallCmd) gone(env *Env, cluster client.Client, p v1.Package) error {
	ctx, cancel := context.WithTimeout(env.Context, c.Wait)
	defer cancel()
	progress := newProgress(env.Stderr)
	defer progress.end()
	progress.say("removing %s and what it brought", shortName(p))
	tick := time.NewTicker(look)
	defer tick.Stop()
	now := v1.NewPackage(p.PackageKind())
	for {
		err := cluster.Get(ctx, client.ObjectKeyFromObject(p), now)
		if apierrors.IsNotFound(err) || err == nil && now.GetUID() != p.GetUID() {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return classify(err, "read %s", shortName(p))
		}
		select {
		case <-ctx.Done():
			if env.Context.Err() != nil {
				return env.Context.Err()
			}
			return ErrStillGoing.New(nil, "%s is still being removed", shortName(p))
		case <-tick.C:
		}
	}
}
