package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Failures of an install.
var (
	ErrInstalledOtherwise = failure.Register(failure.Code{
		Name: "AlreadyInstalled", Class: failure.Conflict,
		Cause: "A package of that kind and name is installed from another reference.",
		Fix:   "Give the new package another name, or uninstall the old one first.",
	})
	ErrWait = failure.Register(failure.Code{
		Name: "NotHealthyInTime", Class: failure.Timeout,
		Cause: "The package did not become healthy in the time given with --wait.",
		Fix:   "The install goes on: look at it with `xpkg tree NAME`, or wait for longer.",
	})
)

type installCmd struct {
	Kind string `arg:"" enum:"provider,configuration,function" help:"Kind of package: provider, configuration or function."`
	Ref  string `arg:"" help:"Package to install, for example xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0."`
	Name string `arg:"" optional:"" help:"Name of the package in the cluster. Default is made of the repository."`

	Wait                     time.Duration `short:"w" placeholder:"2m" help:"Wait this long for the package to become healthy."`
	ManualActivation         bool          `short:"m" help:"Do not activate new revisions: a person does it."`
	RevisionHistoryLimit     *int64        `short:"r" placeholder:"N" help:"How many inactive revisions are kept. 0 keeps all."`
	PackagePullSecrets       []string      `placeholder:"NAME" help:"Secrets with credentials for the registry."`
	PackagePullPolicy        string        `enum:",IfNotPresent,Always,Never" default:"" placeholder:"POLICY" help:"When content is downloaded: IfNotPresent, Always or Never."`
	RuntimeConfig            string        `placeholder:"NAME" help:"DeploymentRuntimeConfig of the package's program."`
	SkipDependencyResolution bool          `help:"Install without the packages that this one depends on."`

	clusterFlags
	outputFlag
}

// Run creates the object that installs a package.
func (c *installCmd) Run(env *Env) error {
	ref, err := oci.ParseReference(c.Ref, oci.ParseOptions{DefaultRegistry: defaultRegistry})
	if err != nil {
		return err
	}
	cluster, err := c.client()
	if err != nil {
		return err
	}
	p := c.object(ref)
	created, err := c.create(env, cluster, p)
	if err != nil {
		return err
	}
	if c.Wait > 0 {
		if err := c.wait(env, cluster, p, created); err != nil {
			return err
		}
	}
	return c.print(env.Stdout, clean(p), func(w io.Writer) error {
		word := "unchanged"
		if created {
			word = "created"
		}
		if c.Wait > 0 {
			word = "healthy"
		}
		_, err := fmt.Fprintf(w, "%s %s (%s)\n", shortName(p), word, p.PackageSpec().Package)
		return err
	})
}

// defaultRegistry is where a reference without a registry points to (packages
// guide, "Pushing a Package"). It is always printed.
const defaultRegistry = "docker.io"

// object is the package as the flags describe it.
func (c *installCmd) object(ref oci.Reference) v1.Package {
	p := v1.NewPackage(kindOf(c.Kind))
	p.SetName(cmp.Or(c.Name, oci.ToDNSLabel(ref.Repository)))
	spec := p.PackageSpec()
	spec.Package = ref.String()
	spec.PackagePullPolicy = corev1.PullPolicy(c.PackagePullPolicy)
	spec.RevisionHistoryLimit = c.RevisionHistoryLimit
	spec.SkipDependencyResolution = c.SkipDependencyResolution
	if c.ManualActivation {
		spec.RevisionActivationPolicy = v1.ManualActivation
	}
	for _, s := range c.PackagePullSecrets {
		spec.PackagePullSecrets = append(spec.PackagePullSecrets, corev1.LocalObjectReference{Name: s})
	}
	if r := p.RuntimeSpec(); r != nil && c.RuntimeConfig != "" {
		r.RuntimeConfigRef = &v1.RuntimeConfigReference{Name: c.RuntimeConfig}
	}
	return p
}

// create makes the object, or finds that it is there already.
func (c *installCmd) create(env *Env, cluster client.Client, p v1.Package) (created bool, err error) {
	want := p.PackageSpec().Package
	kind := p.GetObjectKind().GroupVersionKind()
	err = cluster.Create(env.Context, p)
	p.GetObjectKind().SetGroupVersionKind(kind)
	if !apierrors.IsAlreadyExists(err) {
		return err == nil, classify(err, "create %s", shortName(p))
	}
	if err := cluster.Get(env.Context, client.ObjectKeyFromObject(p), p); err != nil {
		return false, classify(err, "read %s", shortName(p))
	}
	p.GetObjectKind().SetGroupVersionKind(kind)
	if is := p.PackageSpec().Package; is != want {
		return false, ErrInstalledOtherwise.New(nil, "%s is installed from %s and not from %s", shortName(p), is, want)
	}
	return false, nil
}

// wait waits until p is healthy. An install that has failed, and of which nothing
// is in the cluster, is taken back, so that nothing half-made stays.
func (c *installCmd) wait(env *Env, cluster client.Client, p v1.Package, created bool) error {
	ctx, cancel := context.WithTimeout(env.Context, c.Wait)
	defer cancel()
	progress := newProgress(env.Stderr)
	defer progress.end()
	progress.say("installing %s from %s", shortName(p), p.PackageSpec().Package)
	err := waitHealthy(ctx, cluster, p, progress)
	progress.end()
	if err == nil || env.Context.Err() != nil {
		return cmp.Or(err, env.Context.Err())
	}
	_, _, failed := failureOf(p)
	if created && failed && p.PackageStatus().CurrentRevision == "" {
		return takeBack(env, cluster, p, err)
	}
	return err
}

func takeBack(env *Env, cluster client.Client, p v1.Package, why error) error {
	uid := p.GetUID()
	if err := cluster.Delete(env.Context, p, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return errors.Join(why, classify(err, "remove %s again", shortName(p)))
	}
	f := failure.From(why)
	advice := f.Do
	if ErrWait.Is(why) {
		advice = "Mend what the message names, and install it again."
	}
	return f.WithDo("%s Nothing was installed: %s was removed again.", advice, shortName(p))
}

// look is how often a package that is waited for is read.
const look = 200 * time.Millisecond

func waitHealthy(ctx context.Context, cluster client.Client, p v1.Package, progress *progress) error {
	kind := p.GetObjectKind().GroupVersionKind()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil && ctx.Err() == nil {
			return classify(err, "read %s", shortName(p))
		}
		p.GetObjectKind().SetGroupVersionKind(kind)
		health := p.GetCondition(v1.TypeHealthy)
		current := health.ObservedGeneration == p.GetGeneration()
		if current && health.Status == corev1.ConditionTrue {
			return nil
		}
		if current && health.Message != "" {
			if err := final(p); err != nil {
				return err
			}
			progress.say("%s: %s", shortName(p), health.Message)
		}
		select {
		case <-ctx.Done():
			return ErrWait.New(reason(health.Message), "%s is not healthy", shortName(p))
		case <-tick.C:
		}
	}
}

func reason(message string) error {
	if message == "" {
		return errors.New("the package manager has not looked at it yet; is one running?")
	}
	return errors.New(strings.TrimSuffix(message, "."))
}

// final tells a failure that waiting does not mend from one that it may.
func final(p v1.Package) error {
	code, what, _ := failureOf(p)
	switch code.Class.Name {
	case failure.Invalid.Name, failure.Usage.Name, failure.NotFound.Name, failure.Unauthorized.Name,
		failure.Untrusted.Name, failure.Limit.Name, failure.Unsupported.Name:
		return code.New(errors.New(what), "%s cannot be installed", shortName(p))
	}
	return nil
}

// failureOf reads the failure in the message of the condition Healthy, which is
// "CODE: what failed. What to do."
func failureOf(p v1.Package) (code failure.Code, what string, failed bool) {
	name, rest, _ := strings.Cut(p.GetCondition(v1.TypeHealthy).Message, ": ")
	for _, code := range failure.Codes() {
		if code.Name == name {
			return code, strings.TrimSuffix(strings.TrimSuffix(rest, " "+code.Fix), "."), true
		}
	}
	return failure.Code{}, "", false
}
