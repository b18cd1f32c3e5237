package dependencies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

type depsPushCmd struct {
	Layout string `arg:"" help:"OCI layout that xpkg deps vendor wrote."`
	To     string `arg:"" name:"prefix" help:"Destination: REGISTRY or REGISTRY/PREFIX. Each package keeps its full name below it: xpkg.crossplane.io/a/b becomes REGISTRY/PREFIX/xpkg.crossplane.io/a/b."`
	flags.RegistryFlags
	flags.DataDirFlag
	Output view.ObjectFormat `short:"o" placeholder:"FORMAT" complete:"object-format" help:"Format of the ImageConfigs: yaml, json, or jsonpath= and a template. Default is yaml."`
}

// Run pushes all packages of a folder, with unchanged digests.
func (c *depsPushCmd) Run(env *terminal.Env) error {
	from, err := archive.OpenCollection(strings.TrimPrefix(c.Layout, location.LayoutPrefix), oci.Limits{})
	if err != nil {
		return err
	}
	all := from.References()
	if len(all) == 0 {
		return archive.ErrNotAnArchive.New(nil, "%s contains no packages", c.Layout)
	}
	if err := checkVendoredLock(env, strings.TrimPrefix(c.Layout, location.LayoutPrefix), all); err != nil {
		return err
	}
	target, err := parsePrefix(c.To)
	if err != nil {
		return err
	}
	c.Keychain = c.WriteKeychain()
	opts, err := c.Options(env.Context, oci.Limits{}, nil, strings.SplitN(target, "/", 2)[0])
	if err != nil {
		return err
	}
	if err := pushAll(env, opts, from, all, target); err != nil {
		return err
	}
	configs, err := rewriteConfigs(all, target)
	if err != nil {
		return err
	}
	return view.PrintManifests(env.Stdout, c.Output, configs)
}

// checkVendoredLock fails with LockTagMismatch if the lock file of a layout names a package that the layout does not
// contain with the same tag and digest. A layout without a lock file is not checked.
func checkVendoredLock(env *terminal.Env, dir string, packages []oci.Reference) error {
	file := filepath.Join(dir, vendoredLock)
	f, err := readPreviousLock(env, file)
	if err != nil {
		return err
	}
	for _, p := range f.Packages {
		if want := p.Reference(); !slices.ContainsFunc(
			packages, func(r oci.Reference) bool { return r.String() == want.String() },
		) {
			return versions.ErrLockTag.New(nil, "%s names %s, which %s does not contain", file, want, dir).
				WithDo("Run `xpkg deps vendor` again.")
		}
	}
	return nil
}

// parsePrefix returns the canonical form of a registry, or of a prefix within one.
func parsePrefix(s string) (string, error) {
	const any = "/any"
	ref, err := oci.ParseReference(strings.TrimSuffix(s, "/")+any, oci.ParseOptions{AllowUntagged: true})
	if err != nil || ref.Tag != "" || !ref.Digest.IsZero() {
		return "", terminal.ErrUsage.New(err, "%q is neither REGISTRY nor REGISTRY/PREFIX", s)
	}
	return strings.TrimSuffix(ref.Name(), any), nil
}

// pushAll pushes packages, and reports each one. A package that cannot replace another content of its tag does not stop
// the others.
func pushAll(
	env *terminal.Env, opts remote.Options, from *archive.Collection, all []oci.Reference, target string,
) error {
	p := terminal.StartTask(env.Stderr, "pushing %s", wording.Count(len(all), "package"))
	defer p.End()
	var unchanged sync.Map
	opts.Warn = p.Warn
	opts.Unchanged = func(ref oci.Reference) {
		unchanged.Store(ref, true)
		p.Unchanged(ref)
	}
	client := remote.New(opts)
	defer client.Close()
	immutable := make([]error, len(all))
	err := p.Each(env.Context, len(all), copiesAtOnce, func(ctx context.Context, i int) error {
		to, err := pushOne(ctx, client, from, all[i], target)
		if errors.Is(err, remote.ErrImmutable) {
			immutable[i] = err
			return nil
		}
		if _, found := unchanged.Load(to); err == nil && !found {
			fmt.Fprintf(p, "pushed %s\n", terminal.Safe(to.String()))
		}
		return err
	})
	return errors.Join(err, errors.Join(immutable...))
}

func pushOne(
	ctx context.Context, client *remote.Client, from *archive.Collection, ref oci.Reference, target string,
) (_ oci.Reference, err error) {
	to, err := relocated(ref, target)
	if err != nil {
		return oci.Reference{}, err
	}
	a, err := from.Artifact(ref)
	if err != nil {
		return oci.Reference{}, err
	}
	defer terminal.Close(&err, a)
	_, err = client.Push(ctx, to, a)
	return to, err
}

// relocated returns the repository of a package below a prefix. The name contains the registry, so that
// packages of different registries have different names.
func relocated(ref oci.Reference, target string) (oci.Reference, error) {
	name := underRegistry(ref.Registry, target) + strings.TrimPrefix(ref.String(), ref.Registry)
	return oci.ParseReference(name, oci.ParseOptions{})
}

// underRegistry returns the path element for a registry. Repository names cannot contain a port.
func underRegistry(registry, target string) string {
	label := registry
	if strings.ContainsAny(label, ":[]") {
		label = strings.Trim(strings.NewReplacer(":", "-", "[", "", "]", "").Replace(label), "-")
	}
	return target + "/" + label
}

// rewriteConfigs returns the ImageConfigs that make a cluster pull packages from a prefix, one for each
// registry.
func rewriteConfigs(all []oci.Reference, target string) ([]map[string]any, error) {
	registries := map[string]bool{}
	for _, ref := range all {
		registries[ref.Registry] = true
	}
	var out []map[string]any
	for _, registry := range slices.Sorted(maps.Keys(registries)) {
		plain, err := bootstrap.Plain(&v1beta1.ImageConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ImageConfig"},
			ObjectMeta: metav1.ObjectMeta{Name: "vendored-" + cmp.Or(oci.ToDNSLabel(registry), "packages")},
			Spec: v1beta1.ImageConfigSpec{
				MatchImages:  []v1beta1.ImageMatch{{Type: v1beta1.Prefix, Prefix: registry}},
				RewriteImage: &v1beta1.ImageRewrite{Prefix: underRegistry(registry, target)},
			},
		})
		if err != nil {
			return nil, err
		}
		out = append(out, plain)
	}
	return out, nil
}
