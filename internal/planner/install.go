package planner

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Install plans to create or update a package. For an existing package, only the spec of want and
// its consents count.
//
// It fails if the content cannot be read or is of another kind, or if the dependencies have no
// solution. Problems that prevent the objects from being established are part of the plan.
func (pl *Planner) Install(ctx context.Context, want v1.Package, o Options) (*Plan, error) {
	return pl.start(o).install(ctx, want)
}

func (pl *planning) install(ctx context.Context, want v1.Package) (*Plan, error) {
	s, err := pl.read(ctx, want)
	if err != nil {
		return nil, err
	}
	p, err := s.updated(want)
	if err != nil {
		return nil, err
	}
	maintained, err := pl.maintenance(ctx, s.live, p)
	if err != nil {
		return nil, err
	}
	packages := pl.packages()
	res, err := packages.Resolve(ctx, p, s.revisions, state.ResolveOptions{})
	if err != nil {
		return nil, err
	}
	pkg, err := packages.Read(ctx, res.Origin, res.Digest, p.PackageSpec().Package, p.PackageSpec().PackagePullPolicy)
	if err != nil {
		return nil, err
	}
	if err := revision.Installable(p, pkg); err != nil {
		return nil, err
	}
	if err := provide.CheckSelected(p.PackageSpec().Package, pkg, pl.Provides...); err != nil {
		return nil, err
	}
	rules, err := pl.outsideRules(p, pkg)
	if err != nil {
		return nil, err
	}
	adopted, err := pl.allowAdoption(ctx, p, pkg)
	if err != nil {
		return nil, err
	}
	accepted, err := pl.allowBreaks(s.live, p, pkg, res.Digest.String())
	if err != nil {
		return nil, err
	}
	s.contents = pl.contentsWith(s, p, pkg)
	kinds, err := pl.bindKinds(ctx, s, p, pkg)
	if err != nil {
		return nil, err
	}
	pinned := pl.pin(s.live, p, res)
	if err := s.setGeneration(p); err != nil {
		return nil, err
	}
	out, err := s.startInstall(p, res)
	if err != nil {
		return nil, err
	}
	out.recordMaintenance(maintained)
	if revision.LenientContent(p) {
		out.warn(fmt.Sprintf(
			"The package is read with the lenient policy of its annotation %s; `xpkg lint %s` reports what is accepted.",
			revision.AnnotationContentPolicy, p.PackageSpec().Package,
		))
		for _, text := range revision.AcceptedContent(pkg) {
			out.warn("Accepted: " + text + ".")
		}
	}
	mayPull := revision.MayPull(p.PackageSpec().PackagePullPolicy)
	out.Content.Signers, err = pl.Source.Verify(ctx, res.Origin, res.Digest, mayPull)
	if err != nil {
		return nil, err
	}
	out.warnOfSignatures(res.Route.Verifications, out.Content.Signers)
	t, err := pl.transition(p, pkg, res.Digest.String(), s.revisions)
	if err != nil {
		return nil, err
	}
	out.Webhooks, out.Adoptions, out.Accepts = newWebhooks(rules, s.live, p, t.Current), adopted, accepted
	if err := pl.warnOfConsents(ctx, p, out); err != nil {
		return nil, err
	}
	configs := pl.runtimeConfigs(ctx, s, p, t)
	out.FieldChanges, out.RuntimeChanges = out.SpecChanges(), configs.changes()
	out.Revisions = revisionChanges(t)
	changes, err := pl.planDependencies(ctx, s, p, t.Current, res.Digest, pkg.Meta.Dependencies(), kinds, out)
	if err != nil {
		return nil, err
	}
	if node, named := graph.NodeFromImage(p, p.PackageSpec().Package, res.Digest, nil); named {
		if err := pl.lostKinds(ctx, s, s.live, pkg, node, out); err != nil {
			return nil, err
		}
	}
	if err := pl.check(ctx, s, p, pkg, t, out); err != nil {
		return nil, err
	}
	pl.runtime(ctx, s, p, pkg, t, res.Digest, out)
	pl.warnOfBindings(ctx, s, p, pkg, t, configs, out)
	if err := pl.objects(ctx, s, p, pkg, t, out); err != nil {
		return nil, err
	}
	out.KindChanges = pl.kindChanges(ctx, s.revisions, pkg, t)
	out.explainAdoption()
	if err := pl.preflight(ctx, s, p, pkg, res.Digest, changes, out); err != nil {
		return nil, err
	}
	pl.markForeign(ctx, s, p, changes, out)
	out.warn(notes(p, t, out)...)
	s.warnOfUnknown(out)
	pl.warnOfTags(ctx, p, res, pinned, out)
	pl.warnOfStatus(ctx, p, res, out)
	return out, nil
}

// transition returns the transition of a package to its content, whose uses of kinds count from now on.
func (pl *planning) transition(
	p v1.Package, pkg *xpkg.Package, digest string, revisions []v1.PackageRevision,
) (revision.Transition, error) {
	uses, err := state.UsesOf(pkg, revisions, revision.Name(p, digest, revisions))
	if len(uses.Kinds) > 0 || uses.Open {
		pl.Uses = append(slices.Clone(pl.Uses), activation.Use{
			By: activation.ByConfiguration(p.GetName()), Kinds: uses.Kinds, Open: uses.Open,
		})
	}
	return revision.Next(p, pkg.Meta, digest, revisions, uses), err
}

// Content returns the content that would be installed for a package.
func (pl *Planner) Content(ctx context.Context, p v1.Package) (*xpkg.Package, error) {
	packages := pl.packages()
	res, err := packages.Resolve(ctx, p, nil, state.ResolveOptions{})
	if err != nil {
		return nil, err
	}
	spec := p.PackageSpec()
	return packages.Read(ctx, res.Origin, res.Digest, spec.Package, spec.PackagePullPolicy)
}

// warnOfTags adds warnings about the reference and the content to which it resolves.
func (pl *planning) warnOfTags(ctx context.Context, p v1.Package, res state.Resolution, pinned bool, out *Plan) {
	if pinned && p.PackageSpec().PackagePullPolicy == corev1.PullAlways {
		out.warn("The plan pins the digest, so the packagePullPolicy Always will not follow the tag.")
	}
	if res.LookupError != nil {
		out.warn(fmt.Sprintf(
			"The registry cannot be reached: %v. The plan keeps the installed content %s.", res.LookupError, res.Digest,
		))
		return
	}
	if now, ok := pl.currentDigest(ctx, p, res); ok && now != res.Digest {
		out.warn(fmt.Sprintf(
			"The tag %s has moved: it refers to %s now. The plan keeps %s.", res.Origin.Ref.Tag, now, res.Digest,
		))
	}
}

// tagTimeout limits the lookup of the current digest of a tag, which only serves a warning.
const tagTimeout = 3 * time.Second

// currentDigest returns the current digest of the tag of a package, if the plan used a recorded
// digest. It returns false otherwise, and if the lookup fails.
func (pl *planning) currentDigest(ctx context.Context, p v1.Package, res state.Resolution) (oci.Digest, bool) {
	if res.LookedUp || res.Origin.Ref.Tag == "" || !revision.MayPull(p.PackageSpec().PackagePullPolicy) {
		return oci.Digest{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, tagTimeout)
	defer cancel()
	d, err := pl.Source.Resolve(ctx, withoutDigest(res.Origin), 0)
	return d, err == nil
}

// withoutDigest returns an origin without its digest, so that its tag is resolved.
func withoutDigest(o fetch.Origin) fetch.Origin {
	o.Ref.Digest = oci.Digest{}
	endpoints := make([]fetch.Endpoint, len(o.Endpoints))
	for i, p := range o.Endpoints {
		p.Ref.Digest = oci.Digest{}
		endpoints[i] = p
	}
	o.Endpoints = endpoints
	return o
}

// updated returns the package after the operation.
func (s *clusterState) updated(want v1.Package) (v1.Package, error) {
	want, err := withDefaults(want)
	if err != nil || s.live == nil {
		return want, err
	}
	p := s.live.DeepCopyObject().(v1.Package)
	*p.PackageSpec() = *want.PackageSpec()
	if r := p.RuntimeSpec(); r != nil {
		*r = *want.RuntimeSpec()
	}
	if s.adopts(want) {
		graph.Adopt(p)
	}
	for _, key := range []string{
		webhooks.AnnotationAllowed, revision.AnnotationAdopt, revision.AnnotationAcceptBreaks, graph.AnnotationKindProviders,
		graph.AnnotationProvides, activation.AnnotationKinds, activation.AnnotationDeactivate,
	} {
		if consent, ok := want.GetAnnotations()[key]; ok {
			p.SetAnnotations(desired.Overlay(p.GetAnnotations(), map[string]string{key: consent}))
		}
	}
	return p, nil
}

// adopts reports whether a package that was installed as a dependency becomes a package that the
// user installed.
func (s *clusterState) adopts(want v1.Package) bool {
	return s.live != nil && graph.IsAutoInstalled(s.live) && !graph.IsAutoInstalled(want)
}

// setGeneration sets the generation that p will have. The API server increments it with each change
// of the spec, which also ends a rollback.
func (s *clusterState) setGeneration(p v1.Package) error {
	if s.live == nil {
		p.SetGeneration(1)
		return nil
	}
	was, err := specOf(s.live)
	if err != nil {
		return err
	}
	is, err := specOf(p)
	if err == nil && !sameJSON(was, is) {
		p.SetGeneration(s.live.GetGeneration() + 1)
	}
	return err
}

// pin adds the digest to the reference of p, and reports whether it did so. It changes nothing if
// Pin is not set, if the installed package has the same reference and content, or if it was rolled back from
// the pinned reference: then the change of the reference is the one that ends the rollback.
func (pl *planning) pin(live, p v1.Package, res state.Resolution) bool {
	spec := p.PackageSpec()
	if !pl.Pin || len(res.Origin.Endpoints) == 0 || !res.Origin.Ref.Digest.IsZero() {
		return false
	}
	if live != nil && live.PackageSpec().Package == spec.Package && recordedDigest(live) == res.Digest.String() {
		return false
	}
	// A rewritten image has another name, so the digest is added to the reference in the spec.
	pinned := spec.Package + "@" + res.Digest.String()
	if live != nil && live.PackageSpec().Package == pinned && revision.PolicyOf(live).Back != "" {
		return false
	}
	spec.Package = pinned
	return true
}

// startInstall returns the plan of an install or update without anything that depends on the
// content.
func (s *clusterState) startInstall(p v1.Package, res state.Resolution) (*Plan, error) {
	op := Install
	if s.live != nil {
		op = Update
	}
	out, err := s.startPlan(op, p)
	if err != nil {
		return nil, err
	}
	out.Adopts = s.adopts(p)
	reference, digest := p.PackageSpec().Package, res.Digest.String()
	out.Package.To = &Version{Reference: reference, Digest: digest}
	out.Content = &Content{Reference: reference, Resolved: reference, Digest: digest}
	switch {
	case res.LookupError != nil:
		out.Content.Resolved = res.Image + "@" + digest
	case len(res.Origin.Endpoints) > 0:
		out.Content.Resolved = res.Origin.Ref.WithDigest(res.Digest).String()
	}
	out.Package.Object, err = written(p)
	return out, err
}
