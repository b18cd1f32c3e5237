package imageconfig

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

const image = "xpkg.io/acme/provider-x:v1"

// config returns an image config for prefixes that are separated by spaces.
func config(name, prefixes string, parts ...func(*v1beta1.ImageConfigSpec)) v1beta1.ImageConfig {
	c := v1beta1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for p := range strings.FieldsSeq(prefixes) {
		c.Spec.MatchImages = append(c.Spec.MatchImages, v1beta1.ImageMatch{Type: v1beta1.Prefix, Prefix: p})
	}
	for _, part := range parts {
		part(&c.Spec)
	}
	return c
}

func registry(s *v1beta1.ImageConfigSpec) *v1beta1.RegistryConfig {
	if s.Registry == nil {
		s.Registry = &v1beta1.RegistryConfig{}
	}
	return s.Registry
}

func rewrite(prefix string) func(*v1beta1.ImageConfigSpec) {
	return func(s *v1beta1.ImageConfigSpec) { s.RewriteImage = &v1beta1.ImageRewrite{Prefix: prefix} }
}

func secret(name string) func(*v1beta1.ImageConfigSpec) {
	return func(s *v1beta1.ImageConfigSpec) {
		registry(s).Authentication = &v1beta1.RegistryAuthentication{PullSecretRef: corev1.LocalObjectReference{Name: name}}
	}
}

func authority(pem string) func(*v1beta1.ImageConfigSpec) {
	return func(s *v1beta1.ImageConfigSpec) { registry(s).CABundle = pem }
}

func plain(s *v1beta1.ImageConfigSpec) { registry(s).PlainHTTP = true }

func mirror(prefixes string) func(*v1beta1.ImageConfigSpec) {
	return func(s *v1beta1.ImageConfigSpec) {
		for p := range strings.SplitSeq(prefixes, " ") {
			registry(s).Mirrors = append(registry(s).Mirrors, v1beta1.RegistryMirror{Prefix: p})
		}
	}
}

func runtime(name string) func(*v1beta1.ImageConfigSpec) {
	return func(s *v1beta1.ImageConfigSpec) {
		s.Runtime = &v1beta1.ImageRuntime{ConfigRef: &v1.RuntimeConfigReference{Name: name}}
	}
}

func verify(cosign *v1beta1.CosignVerification) func(*v1beta1.ImageConfigSpec) {
	return func(s *v1beta1.ImageConfigSpec) {
		s.Verification = &v1beta1.ImageVerification{Provider: v1beta1.Cosign, Cosign: cosign}
	}
}

// applied writes references as "name:reason name:reason".
func applied(refs []v1.ImageConfigRef) string {
	var out []string
	for _, r := range refs {
		out = append(out, r.Name+":"+string(r.Reason))
	}
	return strings.Join(out, " ")
}

func TestChoose(t *testing.T) {
	own := func(secrets ...string) []Source { return []Source{{Image: image, PullSecrets: secrets}} }
	tests := map[string]struct {
		secrets []string
		configs []v1beta1.ImageConfig
		want    Route
		applied string
	}{
		"Nothing": {want: Route{Image: image, Sources: own()}},
		"NoMatch": {configs: []v1beta1.ImageConfig{config("a", "other.io/", secret("s"), rewrite("x"))}, want: Route{
			Image: image, Sources: own(),
		}},
		// Edge case 40.
		"LongestAcrossConfigs": {
			configs: []v1beta1.ImageConfig{config("a", "xpkg.io/acme", secret("long")), config("b", "xpkg.io", secret("short"))},
			want:    Route{Image: image, Sources: own("long")}, applied: "a:SetImagePullSecret",
		},
		"LongestWithinOne": {
			configs: []v1beta1.ImageConfig{
				config("a", "xpkg.io/ac", secret("shorter")), config("b", "xpkg.io/a xpkg.io/acme/", secret("longer")),
			},
			want: Route{Image: image, Sources: own("longer")}, applied: "b:SetImagePullSecret",
		},
		"TiesByName": {
			configs: []v1beta1.ImageConfig{
				config("c", "xpkg.io/", secret("c")), config("a", "xpkg.io/", secret("a")), config("b", "xpkg.io/", secret("b")),
			},
			want: Route{Image: image, Sources: own("a")}, applied: "a:SetImagePullSecret",
		},
		// Edge case 41.
		"SkipsWhatIsSilent": {
			configs: []v1beta1.ImageConfig{
				config("a", image, runtime("r")), config("b", image, secret("")), config("c", "xpkg.io", secret("s")),
			},
			want:    Route{Image: image, Sources: own("s"), Runtime: &v1.RuntimeConfigReference{Name: "r"}},
			applied: "a:ConfigureRuntime c:SetImagePullSecret",
		},
		// Edge case 42.
		"RewriteReplacesTheLongest": {
			configs: []v1beta1.ImageConfig{config("a", "xpkg.io xpkg.io/acme", rewrite("mirror.io:5000/all"))},
			want: Route{
				Image:   "mirror.io:5000/all/provider-x:v1",
				Sources: []Source{{Image: "mirror.io:5000/all/provider-x:v1"}},
			},
			applied: "a:RewriteImage",
		},
		"RewriteOnce": {
			configs: []v1beta1.ImageConfig{config("a", "xpkg.io", rewrite("b.io")), config("b", "b.io", rewrite("c.io"))},
			want:    Route{Image: "b.io/acme/provider-x:v1", Sources: []Source{{Image: "b.io/acme/provider-x:v1"}}},
			applied: "a:RewriteImage",
		},
		"TheRestGoesByTheRewritten": {
			secrets: []string{"mine", "", "mine"},
			configs: []v1beta1.ImageConfig{
				config("a", "xpkg.io", rewrite("b.io"), secret("old"), runtime("old"), plain),
				config("b", "b.io", secret("new"), runtime("new"), authority("pem")),
			},
			want: Route{
				Image:   "b.io/acme/provider-x:v1",
				Sources: []Source{{Image: "b.io/acme/provider-x:v1", PullSecrets: []string{"mine", "new"}, CABundle: "pem"}},
				Runtime: &v1.RuntimeConfigReference{Name: "new"},
			},
			applied: "a:RewriteImage b:ConfigureRegistry b:ConfigureRuntime b:SetImagePullSecret",
		},
		"MirrorsHaveTheirOwn": {
			secrets: []string{"mine"},
			configs: []v1beta1.ImageConfig{
				config("a", "xpkg.io/acme", mirror("m.io/x localhost:5000/acme"), secret("origin")),
				config("m", "m.io", authority("pem"), secret("mirror")),
				config("l", "localhost:5000", plain),
			},
			want: Route{Image: image, Sources: []Source{
				{Image: "m.io/x/provider-x:v1", PullSecrets: []string{"mine", "mirror"}, CABundle: "pem"},
				{Image: "localhost:5000/acme/provider-x:v1", PullSecrets: []string{"mine"}, PlainHTTP: true},
				{Image: image, PullSecrets: []string{"mine", "origin"}},
			}},
			applied: "a:SetImagePullSecret a:UseMirror l:ConfigureRegistry m:ConfigureRegistry m:SetImagePullSecret",
		},
		"MirrorsOfTheRewritten": {
			configs: []v1beta1.ImageConfig{
				config("a", "xpkg.io", rewrite("b.io"), mirror("never.io")), config("b", "b.io", mirror("m.io b.io")),
			},
			want: Route{Image: "b.io/acme/provider-x:v1", Sources: []Source{
				{Image: "m.io/acme/provider-x:v1"}, {Image: "b.io/acme/provider-x:v1"},
			}},
			applied: "a:RewriteImage b:UseMirror",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(image, tc.secrets, tc.configs)
			if err != nil {
				t.Fatal(err)
			}
			if a := applied(got.Applied); a != tc.applied {
				t.Errorf("applied %q, want %q", a, tc.applied)
			}
			got.Applied = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An incomplete config that is not selected has no effect.
func TestChooseRefuses(t *testing.T) {
	for name, c := range map[string]v1beta1.ImageConfig{
		"EmptyRewrite": config("bad", "xpkg.io/acme", rewrite("")),
		"EmptyMirror":  config("bad", "xpkg.io/acme", mirror("ok.io ")),
		"NoCosign":     config("bad", "xpkg.io/acme", verify(nil)),
		"NoAuthority":  config("bad", "xpkg.io/acme", verify(&v1beta1.CosignVerification{})),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Choose(image, nil, []v1beta1.ImageConfig{c})
			if !errors.Is(err, ErrImageConfigInvalid) || !strings.Contains(err.Error(), "the ImageConfig bad ") {
				t.Errorf("got %v", err)
			}
			better := config("good", image, rewrite("y.io"), mirror("m.io"), verify(keyed("good")))
			if _, err := Choose(image, nil, []v1beta1.ImageConfig{c, better}); errors.Is(err, ErrImageConfigInvalid) {
				t.Errorf("with a better one: %v", err)
			}
			if _, err := Choose("other.io/acme/x:v1", nil, []v1beta1.ImageConfig{c}); err != nil {
				t.Errorf("for another image: %v", err)
			}
		})
	}
}

// keyed is a requirement of a signature by a key.
func keyed(names ...string) *v1beta1.CosignVerification {
	out := &v1beta1.CosignVerification{}
	for _, n := range names {
		out.Authorities = append(out.Authorities, v1beta1.CosignAuthority{
			Name: n, Key: &v1beta1.KeyReference{SecretRef: v1beta1.SecretKeySelector{Name: "keys", Key: n}},
		})
	}
	return out
}

// The given reference and the rewritten one select requirements, which a longer prefix replaces only where a part of
// the reference ends.
//
// hardening: G1, G9
func TestChooseVerifications(t *testing.T) {
	signed := func(name, prefixes string) v1beta1.ImageConfig { return config(name, prefixes, verify(keyed(name))) }
	for name, tc := range map[string]struct {
		configs []v1beta1.ImageConfig
		want    string
	}{
		"nothing matches":          {[]v1beta1.ImageConfig{signed("a", "y.io xpkg.io/other")}, ""},
		"a whole part":             {[]v1beta1.ImageConfig{signed("a", "xpkg.io"), signed("b", "xpkg.io/acme")}, "b"},
		"a part of a part":         {[]v1beta1.ImageConfig{signed("a", "xpkg.io/acme/"), signed("b", "xpkg.io/acme/prov")}, "a b"},
		"only a part of a part":    {[]v1beta1.ImageConfig{signed("b", "xpkg.io/acme/prov")}, "b"},
		"a twin":                   {[]v1beta1.ImageConfig{signed("b", "xpkg.io/acme"), signed("a", "xpkg.io/acme")}, "a b"},
		"the rewritten one":        {[]v1beta1.ImageConfig{signed("a", "y.io"), config("m", image, rewrite("y.io"))}, "a"},
		"the given one":            {[]v1beta1.ImageConfig{signed("a", "xpkg.io"), config("m", image, rewrite("y.io"))}, "a"},
		"both":                     {[]v1beta1.ImageConfig{signed("a", "xpkg.io"), signed("b", "y.io"), config("m", image, rewrite("y.io"))}, "a b"},
		"a rewrite of the same":    {[]v1beta1.ImageConfig{config("m", image, rewrite("y.io"), verify(keyed("m")))}, "m"},
		"the tag":                  {[]v1beta1.ImageConfig{signed("a", image), signed("b", "xpkg.io")}, "a"},
		"a mirror changes nothing": {[]v1beta1.ImageConfig{signed("a", "m.io"), config("m", image, mirror("m.io"))}, ""},
	} {
		for range 2 {
			route, err := Choose(image, nil, tc.configs)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var got, refs []string
			for _, v := range route.Verifications {
				got = append(got, v.Config)
				refs = append(refs, v.Config+":VerifyImage")
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%s: %v, want %s", name, got, tc.want)
			}
			for _, r := range refs {
				if !strings.Contains(applied(route.Applied), r) {
					t.Errorf("%s: %s is not among the applied ones: %s", name, r, applied(route.Applied))
				}
			}
			slices.Reverse(tc.configs)
		}
	}
}

// Requirements that would trust every signer, and others that cannot be met, are refused.
func TestChooseRefusesVerifications(t *testing.T) {
	const issuer, subject = "https://ci.example.org", "https://ci.example.org/acme/release"
	authority := func(a v1beta1.CosignAuthority) *v1beta1.CosignVerification {
		a.Name = "a"
		return &v1beta1.CosignVerification{Authorities: []v1beta1.CosignAuthority{a}}
	}
	identity := func(i v1beta1.Identity) *v1beta1.CosignVerification {
		return authority(v1beta1.CosignAuthority{Keyless: &v1beta1.KeylessReference{Identities: []v1beta1.Identity{i}}})
	}
	hash, both, attestation := keyed("a"), keyed("a"), keyed("a")
	hash.Authorities[0].Key.HashAlgorithm = "md5"
	both.Authorities[0].Keyless = &v1beta1.KeylessReference{}
	attestation.Authorities[0].Attestations = []v1beta1.Attestation{{}}
	for want, c := range map[string]*v1beta1.CosignVerification{
		"has no authority":      {},
		"neither a key":         authority(v1beta1.CosignAuthority{}),
		"without identities":    authority(v1beta1.CosignAuthority{Keyless: &v1beta1.KeylessReference{}}),
		"a key and identities":  both,
		"the hash algorithm":    hash,
		"it has no issuer":      identity(v1beta1.Identity{}),
		"it has no subject":     identity(v1beta1.Identity{Issuer: issuer}),
		"its issuerRegExp":      identity(v1beta1.Identity{IssuerRegExp: "(", Subject: subject}),
		"its subjectRegExp":     identity(v1beta1.Identity{Issuer: issuer, SubjectRegExp: ")("}),
		"without predicateType": attestation,
	} {
		_, err := Choose(image, nil, []v1beta1.ImageConfig{config("bad", image, verify(c))})
		if !errors.Is(err, ErrImageConfigInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// hardening: A9
func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		image, prefix string
		want          bool
	}{
		{"xpkg.io/acme/provider-x:v1", "xpkg.io/acme/prov", true},
		{"xpkg.io/acme/provider-x:v1", "xpkg.io/", true},
		{"xpkg.io/acme/provider-x:v1", "xpkg.io", true},
		{"xpkg.io:5000/acme/x:v1", "xpkg.io", true},
		{"xpkg.io:5000/acme/x:v1", "xpkg.io:", true},
		{"xpkg.io:5000/acme/x:v1", "xpkg.io:5000", true},
		{"xpkg.io:5000/acme/x:v1", "xpkg.io:50", false},
		{"xpkg.io.evil.test/acme/x:v1", "xpkg.io", false},
		{"xpkg.io-evil.test/acme/x:v1", "xpkg.io", false},
		{"xpkg.io/acme/x:v1", "xpkg", false},
		{"xpkg.io/acme/x:v1", "", false},
		{"mycoolpkg", "mycoolpkg", true},
		{"mycoolpkg@sha256:0", "mycoolpkg", true},
		{"other.io/x:v1", "xpkg.io", false},
	} {
		if got := matches(tc.image, tc.prefix); got != tc.want {
			t.Errorf("%q begins with %q: got %v", tc.image, tc.prefix, got)
		}
	}
}

func TestConcerns(t *testing.T) {
	c := config("a", "a.io/x b.io")
	for images, want := range map[string]bool{
		"": false, "c.io/x:v1": false, "c.io/x:v1 b.io/y:v1": true, "a.io/x:v1": true, "a.io/y:v1": false,
	} {
		if got := Concerns(&c, strings.Fields(images)...); got != want {
			t.Errorf("%q: got %v", images, got)
		}
	}
	route, err := Choose("a.io/x:v1", nil, []v1beta1.ImageConfig{config("b", "a.io", mirror("m.io"))})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.io/x:v1", "m.io/x:v1"}, route.Images()); diff != "" {
		t.Error(diff)
	}
}
