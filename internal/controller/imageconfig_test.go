package controller_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
)

// imageConfig returns an ImageConfig for the images with a prefix.
func imageConfig(name, prefix string) *v1beta1.ImageConfig {
	return &v1beta1.ImageConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta1.ImageConfigSpec{MatchImages: []v1beta1.ImageMatch{{Prefix: prefix}}},
	}
}

func rewriting(name, prefix, to string) *v1beta1.ImageConfig {
	c := imageConfig(name, prefix)
	c.Spec.RewriteImage = &v1beta1.ImageRewrite{Prefix: to}
	return c
}

func mirroring(name, prefix string, mirrors ...string) *v1beta1.ImageConfig {
	c := imageConfig(name, prefix)
	c.Spec.Registry = &v1beta1.RegistryConfig{}
	for _, m := range mirrors {
		c.Spec.Registry.Mirrors = append(c.Spec.Registry.Mirrors, v1beta1.RegistryMirror{Prefix: m})
	}
	return c
}

func authenticating(name, prefix, secret string) *v1beta1.ImageConfig {
	c := imageConfig(name, prefix)
	c.Spec.Registry = &v1beta1.RegistryConfig{
		Authentication: &v1beta1.RegistryAuthentication{PullSecretRef: corev1.LocalObjectReference{Name: secret}},
	}
	return c
}

// pullSecret returns a secret of the namespace of packages, with a user of a registry.
func pullSecret(t *testing.T, s *testEnv, name, host, user string) *corev1.Secret {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controller.DefaultNamespace}}
	if err := s.Client.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{
		"username": user, "password": "secret",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: controller.DefaultNamespace, Name: name},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: data},
	}
}

// An image is pulled from the location to which it is rewritten, and the status
// contains that location. A change and the removal of the rule take effect at once.
func TestRewrite(t *testing.T) {
	s := sharedEnv(t)
	first, second := newRegistry(t), newRegistry(t)
	_, one := first.push(t, "inner/rewritten:v1", meta("Configuration", "rewritten", ""))
	_, two := second.push(
		t, "inner/rewritten:v1", meta("Configuration", "rewritten", "spec:\n  crossplane: {version: '>=v1.0.0'}\n"),
	)
	const image = "packages.rewrite.invalid/acme/rewritten:v1"
	p := newConfiguration("image-rewrite", image)
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "packages.rewrite.invalid")

	config := rewriting("rewrite-acme", "packages.rewrite.invalid/acme/", first.address+"/inner/")
	s.CreateTemporary(t, config)
	// A longer prefix takes precedence over a shorter one.
	s.CreateTemporary(t, rewriting("rewrite-all", "packages.rewrite.invalid/", "nowhere.invalid/"))
	untilSettled(t, s, p)
	checkResolved(t, p, first.address+"/inner/rewritten:v1", one.String())
	rev := s.Revisions(t, p)[0]
	want := []v1.ImageConfigRef{{Name: "rewrite-acme", Reason: v1.ImageConfigReasonRewrite}}
	for of, got := range map[string][]v1.ImageConfigRef{
		"package": p.Status.AppliedImageConfigRefs, "revision": rev.RevisionStatus().AppliedImageConfigRefs,
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("applied to the %s (-want +got):\n%s", of, diff)
		}
	}
	if got := rev.RevisionStatus().ResolvedImage; !strings.HasPrefix(got, first.address+"/inner/rewritten") ||
		!strings.HasSuffix(got, "@"+one.String()) {
		t.Errorf("the image of the revision is %s", got)
	}
	if got := rev.RevisionSpec().Image; got != image {
		t.Errorf("the revision asks for %s", got)
	}

	env.Update(t, s.Env, config, func(c *v1beta1.ImageConfig) { c.Spec.RewriteImage.Prefix = second.address + "/inner/" })
	s.WaitPackage(t, p, "follows the other rewriting", func() bool { return p.Status.ResolvedDigest == two.String() })
	untilSettled(t, s, p)
	checkResolved(t, p, second.address+"/inner/rewritten:v1", two.String())

	// A registry without the image does not affect the running revision.
	env.Update(t, s.Env, config, func(c *v1beta1.ImageConfig) { c.Spec.RewriteImage.Prefix = newRegistry(t).address + "/inner/" })
	s.WaitCondition(t, p, v1.TypeSynced, corev1.ConditionFalse, "RepositoryNotFound")
	waitReconciled(t, s.Env, p)
	for _, ct := range []v1.ConditionType{v1.TypeInstalled, v1.TypeHealthy, v1.TypeReady} {
		s.WaitCondition(t, p, ct, corev1.ConditionTrue, "")
	}
	checkResolved(t, p, second.address+"/inner/rewritten:v1", two.String())

	env.Update(t, s.Env, config, func(c *v1beta1.ImageConfig) { c.Spec.RewriteImage.Prefix = "" })
	s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "ImageConfigInvalid")
}

func checkResolved(t *testing.T, p *v1.Configuration, image, digest string) {
	t.Helper()
	if p.Status.ResolvedPackage != image || p.Status.ResolvedDigest != digest ||
		p.Status.CurrentIdentifier != p.Spec.Package {
		t.Errorf(
			"status: %s is %s, %s; want %s, %s", p.Status.CurrentIdentifier, p.Status.ResolvedPackage, p.Status.ResolvedDigest,
			image, digest,
		)
	}
}

// Credentials come from the secrets of a package, or from the secret of an
// ImageConfig. The condition names a missing secret, and a repaired one takes
// effect at once.
func TestPullSecrets(t *testing.T) {
	s := sharedEnv(t)
	t.Run("OfThePackage", func(t *testing.T) {
		r := newRegistry(t)
		ref := pushed(t, r, "private", meta("Configuration", "private", ""))
		r.setFault(forUser("me"))
		p := newConfiguration("image-secret", ref)
		p.Spec.PackagePullSecrets = []corev1.LocalObjectReference{{Name: "of-package"}}
		s.CreateTemporary(t, p)
		s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "pull secret of-package does not exist in namespace "+
			controller.DefaultNamespace)
		s.CreateTemporary(t, pullSecret(t, s, "of-package", r.address, "you"))
		s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "Unauthorized")
		env.Update(t, s.Env, pullSecret(t, s, "of-package", r.address, "me"), func(secret *corev1.Secret) {
			secret.Data = pullSecret(t, s, "of-package", r.address, "me").Data
		})
		untilSettled(t, s, p)
		rev := s.Revisions(t, p)[0]
		if diff := cmp.Diff(p.Spec.PackagePullSecrets, rev.RevisionSpec().PackagePullSecrets); diff != "" {
			t.Errorf("secrets of the revision (-package +revision):\n%s", diff)
		}
		if len(p.Status.AppliedImageConfigRefs) > 0 {
			t.Errorf("image configs: %v", p.Status.AppliedImageConfigRefs)
		}
	})
	t.Run("OfAnImageConfig", func(t *testing.T) {
		r := newRegistry(t)
		ref := pushed(t, r, "private", meta("Configuration", "private", ""))
		r.setFault(forUser("config"))
		p := newConfiguration("image-config-secret", ref)
		s.CreateTemporary(t, p)
		s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "Unauthorized")
		s.CreateTemporary(t, pullSecret(t, s, "of-config", r.address, "config"))
		s.CreateTemporary(t, authenticating("secret-config", r.address+"/acme", "of-config"))
		untilSettled(t, s, p)
		want := []v1.ImageConfigRef{{Name: "secret-config", Reason: v1.ImageConfigReasonPullSecret}}
		if diff := cmp.Diff(want, p.Status.AppliedImageConfigRefs); diff != "" {
			t.Errorf("applied (-want +got):\n%s", diff)
		}
	})
}

// A registry with a private CA is trusted if an ImageConfig contains that CA.
func TestCABundle(t *testing.T) {
	s := sharedEnv(t)
	r := unstarted(cluster.Registry(t))
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // It is spoken to in plain HTTP at first.
	r.StartTLS()
	t.Cleanup(r.Close)
	p := newConfiguration("image-ca", pushed(t, r, "trusted", meta("Configuration", "trusted", "")))
	s.CreateTemporary(t, p)
	s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, r.address)

	config := imageConfig("ca-bundle", r.address)
	config.Spec.Registry = &v1beta1.RegistryConfig{CABundle: "no certificate"}
	s.CreateTemporary(t, config)
	s.WaitCondition(t, p, v1.TypeInstalled, corev1.ConditionFalse, "CABundleInvalid")
	env.Update(t, s.Env, config, func(c *v1beta1.ImageConfig) {
		c.Spec.Registry.CABundle = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}))
	})
	untilSettled(t, s, p)
	want := []v1.ImageConfigRef{{Name: "ca-bundle", Reason: v1.ImageConfigReasonRegistry}}
	if diff := cmp.Diff(want, p.Status.AppliedImageConfigRefs); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
}

// Mirrors are tried first, failing ones are skipped, and none receives the
// credentials of the registry that it mirrors.
func TestMirrors(t *testing.T) {
	s := sharedEnv(t)
	home, mirror := newRegistry(t), newRegistry(t)
	stream := meta("Configuration", "mirrored", "")
	ref := pushed(t, home, "mirrored", stream)
	pushed(t, mirror, "mirrored", stream)
	home.setFault(forUser("home"))
	s.CreateTemporary(t, pullSecret(t, s, "of-home", home.address, "home"))
	config := mirroring("mirrors", home.address+"/", port.Free(t)+"/", mirror.address+"/")
	config.Spec.Registry.Authentication = &v1beta1.RegistryAuthentication{PullSecretRef: corev1.LocalObjectReference{
		Name: "of-home",
	}}
	s.CreateTemporary(t, config)

	p := newConfiguration("image-mirrors", ref)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	if seen := home.requests(""); len(seen) > 0 {
		t.Errorf("the registry was asked beside its mirror: %v", seen)
	}
	if got := p.Status.ResolvedPackage; got != ref {
		t.Errorf("the package is resolved to %s, want %s", got, ref)
	}
	want := []v1.ImageConfigRef{{Name: "mirrors", Reason: v1.ImageConfigReasonPullSecret}, {
		Name: "mirrors", Reason: v1.ImageConfigReasonMirror,
	}}
	if got := p.Status.AppliedImageConfigRefs; !slices.Contains(got, want[1]) {
		t.Errorf("applied: %v, want %v", got, want)
	}
	if seen := mirror.requests(withCredentials); len(seen) > 0 {
		t.Errorf("the mirror got credentials: %v", seen)
	}

	mirror.setFault(hangUp)
	next, _ := home.push(t, "acme/mirrored:v2", stream)
	env.Update(t, s.Env, p, func(p *v1.Configuration) { p.Spec.Package = next })
	untilSettled(t, s, p)
	if len(home.requests(withCredentials)) == 0 {
		t.Error("the registry was asked without credentials")
	}
}

// A package is not reconciled for an ImageConfig that does not concern it.
func TestForeignImageConfig(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	p := newConfiguration("image-foreign", pushed(t, r, "foreign", meta("Configuration", "foreign", "")))
	p.Spec.PackagePullPolicy = corev1.PullAlways
	p.Spec.Package = strings.Replace(p.Spec.Package, ":v1", ":v1@"+digestOf(t, r, "foreign"), 1)
	s.CreateTemporary(t, p)
	untilSettled(t, s, p)
	before := resourceVersions(t, s, p)
	r.reset()
	s.CreateTemporary(t, rewriting("foreign", "elsewhere.invalid/", "nowhere.invalid/"))
	s.CreateTemporary(t, authenticating("foreign-secret", r.address+"0/", "none"))
	// The next ImageConfig is seen after these.
	marker := newConfiguration("image-foreign-marker", "marker.invalid/acme/x:v1")
	s.CreateTemporary(t, marker)
	s.CreateTemporary(t, rewriting("foreign-marker", "marker.invalid/", r.address+"/none/"))
	s.WaitPackage(t, marker, "follows its ImageConfig", func() bool {
		return strings.Contains(marker.GetCondition(v1.TypeReady).Message, r.address)
	})
	if seen := slices.DeleteFunc(
		r.requests(""), func(s string) bool { return strings.Contains(s, "/none/") || strings.HasSuffix(s, "/v2/") },
	); len(seen) > 0 {
		t.Errorf("the registry was asked: %v", seen)
	}
	if after := resourceVersions(t, s, p); !slices.Equal(before, after) {
		t.Errorf("the package or its revision was written: %v, %v", before, after)
	}
}

func digestOf(t *testing.T, r *registry, name string) string {
	t.Helper()
	_, d := r.push(t, "acme/"+name+":v1", meta("Configuration", name, ""))
	return d.String()
}

// resourceVersions returns the resource versions of a package and of its revisions.
func resourceVersions(t *testing.T, s *testEnv, p v1.Package) []string {
	t.Helper()
	if err := s.Client.Get(context.Background(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	out := []string{p.GetResourceVersion()}
	for _, rev := range s.Revisions(t, p) {
		out = append(out, rev.GetResourceVersion())
	}
	return out
}
