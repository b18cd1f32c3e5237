package origin

import (
	"context"
	"errors"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// resource is the target for which credentials are requested.
type resource struct{ ref oci.Reference }

func (r resource) String() string      { return r.ref.Name() }
func (r resource) RegistryStr() string { return r.ref.Registry }

const namespace = "crossplane-system"

// counted is a reader that counts its calls.
type counted struct {
	client.Reader
	lists, gets int
	keys        []client.ObjectKey
}

func (c *counted) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	c.lists++
	return c.Reader.List(ctx, l, opts...)
}

func (c *counted) Get(ctx context.Context, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c.gets++
	c.keys = append(c.keys, k)
	return c.Reader.Get(ctx, k, o, opts...)
}

func reader(t *testing.T, objects ...client.Object) *counted {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &counted{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
}

func pullSecret(name, content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)},
	}
}

func config(name, prefix string, set func(*v1beta1.ImageConfigSpec)) *v1beta1.ImageConfig {
	c := &v1beta1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.MatchImages = []v1beta1.ImageMatch{{Prefix: prefix}}
	set(&c.Spec)
	return c
}

// Without ImageConfigs and secrets there is one list, which the cache answers.
func TestFindNothing(t *testing.T) {
	r := reader(t)
	o, route, err := Finder{Reader: r, Namespace: namespace}.Find(t.Context(), "Registry.Acme.test/acme/x:v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	ref := oci.MustParseReference("registry.acme.test/acme/x:v1")
	if o.Ref != ref || len(o.Endpoints) != 1 || o.Endpoints[0].Ref != ref || o.Endpoints[0].Secrets != nil {
		t.Errorf("got %+v", o)
	}
	if route.Image != ref.String() || len(route.Applied) != 0 {
		t.Errorf("got %+v", route)
	}
	if r.lists != 1 || r.gets != 0 {
		t.Errorf("%d lists, %d reads", r.lists, r.gets)
	}
}

func TestFind(t *testing.T) {
	own := pullSecret("own", `{"auths":{"b.test":{"username":"own","password":"p"}}}`)
	cfg := pullSecret(
		"config", `{"auths":{"b.test":{"username":"config","password":"p"},"m.test":{"username":"mirror","password":"p"}}}`,
	)
	configs, secrets := reader(t,
		config("a", "a.test", func(s *v1beta1.ImageConfigSpec) { s.RewriteImage = &v1beta1.ImageRewrite{Prefix: "b.test"} }),
		config("b", "b.test/acme", func(s *v1beta1.ImageConfigSpec) {
			s.Registry = &v1beta1.RegistryConfig{
				CABundle:       "pem",
				Authentication: &v1beta1.RegistryAuthentication{PullSecretRef: corev1.LocalObjectReference{Name: "config"}},
				Mirrors:        []v1beta1.RegistryMirror{{Prefix: "m.test"}},
			}
		}),
		config("m", "m.test", func(s *v1beta1.ImageConfigSpec) {
			s.Registry = &v1beta1.RegistryConfig{
				PlainHTTP:      true,
				Authentication: &v1beta1.RegistryAuthentication{PullSecretRef: corev1.LocalObjectReference{Name: "config"}},
			}
		}),
	), reader(t, own, cfg)
	f := Finder{Reader: configs, Secrets: secrets, Namespace: namespace}
	o, route, err := f.Find(t.Context(), "a.test/acme/x:v1", []string{"own"})
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, p := range o.Endpoints {
		k, err := p.Secrets(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		user := ""
		if auth, err := k.Resolve(resource{p.Ref}); err == nil {
			if a, err := auth.Authorization(); err == nil {
				user = a.Username
			}
		}
		places = append(
			places, strings.Join([]string{p.Ref.String(), user, p.CABundle, map[bool]string{true: "plain"}[p.PlainHTTP]}, " "),
		)
	}
	if diff := cmp.Diff([]string{"m.test/x:v1 mirror  plain", "b.test/acme/x:v1 own pem "}, places); diff != "" {
		t.Error(diff)
	}
	if o.Ref.String() != "b.test/acme/x:v1" || route.Image != o.Ref.String() || len(route.Applied) != 6 {
		t.Errorf("got %s, %+v", o.Ref, route)
	}
	if configs.lists != 1 || configs.gets != 0 || secrets.gets != 4 {
		t.Errorf("%d lists, %d and %d reads", configs.lists, configs.gets, secrets.gets)
	}
}

// A pull secret is read from the namespace of packages only: a secret of the same name in another namespace does not
// count, and a name cannot select another namespace.
//
// hardening: H4
func TestSecretsOfOtherNamespacesAreNotRead(t *testing.T) {
	foreign := pullSecret("registry", `{"auths":{"a.test":{"auth":"bWU6c2VjcmV0"}}}`)
	foreign.Namespace = "tenant"
	r := reader(t, foreign)
	f := Finder{Reader: r, Namespace: namespace}
	for _, name := range []string{"registry", "tenant/registry", "../tenant/registry"} {
		o, _, err := f.Find(t.Context(), "a.test/acme/x:v1", []string{name})
		if err == nil {
			_, err = o.Endpoints[0].Secrets(t.Context())
		}
		if !errors.Is(err, credentials.ErrPullSecretNotFound) {
			t.Errorf("%s: got %v, want %s", name, err, credentials.ErrPullSecretNotFound.Name)
		}
	}
	for _, key := range r.keys {
		if key.Namespace != namespace {
			t.Errorf("the secret %s was read", key)
		}
	}
}

// hardening: L7
func TestSecretsThatFail(t *testing.T) {
	r := reader(t, pullSecret("bad", "hunter2"))
	f := Finder{Reader: r, Namespace: namespace}
	for name, want := range map[string]errcode.Code{
		"bad": credentials.ErrPullSecretInvalid, "absent": credentials.ErrPullSecretNotFound,
	} {
		o, _, err := f.Find(t.Context(), "a.test/acme/x:v1", []string{name})
		if err != nil {
			t.Fatalf("%s: the secret is not needed yet: %v", name, err)
		}
		if _, err := o.Endpoints[0].Secrets(t.Context()); !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	rewrite := func(prefix string) *v1beta1.ImageConfig {
		return config("a", "a.test", func(s *v1beta1.ImageConfigSpec) {
			s.RewriteImage = &v1beta1.ImageRewrite{
				Prefix: prefix,
			}
		})
	}
	for name, tc := range map[string]struct {
		image  string
		config *v1beta1.ImageConfig
		want   error
	}{
		"NoReference":  {"a.test/UPPER:v1", nil, oci.ErrInvalidReference},
		"NoRegistry":   {"mycoolpkg", nil, oci.ErrInvalidReference},
		"BadRewrite":   {"a.test/x:v1", rewrite("https://b.test"), imageconfig.ErrImageConfigInvalid},
		"EmptyRewrite": {"a.test/x:v1", rewrite(""), imageconfig.ErrImageConfigInvalid},
		"BadMirror": {"a.test/x:v1", config("m", "a.test", func(s *v1beta1.ImageConfigSpec) {
			s.Registry = &v1beta1.RegistryConfig{Mirrors: []v1beta1.RegistryMirror{{Prefix: "M/"}}}
		}), imageconfig.ErrImageConfigInvalid},
		"GoodRewrite": {"a.test/x:v1", rewrite("b.test"), nil},
		"MadeReference": {"short/x:v1", config(
			"a", "short/", func(s *v1beta1.ImageConfigSpec) { s.RewriteImage = &v1beta1.ImageRewrite{Prefix: "b.test/short/"} },
		), nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader(t)
			if tc.config != nil {
				r = reader(t, tc.config)
			}
			_, _, err := Finder{Reader: r, Namespace: namespace}.Find(t.Context(), tc.image, nil)
			if tc.want == nil && err != nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A cluster without the package CRDs has no ImageConfigs.
func TestClusterWithoutPackageCRDsHasNoImageConfigs(t *testing.T) {
	r := reader(t)
	absent := interceptor.NewClient(r.Reader.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "pkg.crossplane.io", Kind: "ImageConfig"}}
		},
	})
	if _, _, err := (Finder{Reader: absent, Namespace: namespace}).Find(t.Context(), "a.test/x:v1", nil); err != nil {
		t.Error(err)
	}
}

// A pull secret that is missing or malformed does not affect the others, whatever their order.
func TestSecretsBesideThoseThatFail(t *testing.T) {
	r := reader(
		t, pullSecret("bad", "hunter2"), pullSecret("good", `{"auths":{"a.test":{"username":"good","password":"x"}}}`),
	)
	f := Finder{Reader: r, Namespace: namespace}
	for _, names := range [][]string{{"absent", "good"}, {"good", "absent"}, {"bad", "good"}, {"bad", "absent", "good"}} {
		o, _, err := f.Find(t.Context(), "a.test/acme/x:v1", names)
		if err != nil {
			t.Fatal(err)
		}
		k, err := o.Endpoints[0].Secrets(t.Context())
		if err != nil {
			t.Errorf("%v: %v", names, err)
			continue
		}
		auth, err := k.Resolve(resource{o.Ref})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := auth.Authorization(); err != nil || got.Username != "good" {
			t.Errorf("%v: got %v, %v", names, got, err)
		}
	}
	o, _, err := f.Find(t.Context(), "a.test/acme/x:v1", []string{"bad", "absent"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Endpoints[0].Secrets(t.Context())
	if !errors.Is(err, credentials.ErrPullSecretNotFound) || !errors.Is(err, credentials.ErrPullSecretInvalid) {
		t.Errorf("without a usable secret: %v", err)
	}
}
