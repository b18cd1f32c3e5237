package credentials

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// secretOf returns a pull secret with a user named like its password for each key.
func secretOf(name string, users map[string]string) corev1.Secret {
	auths := map[string]map[string]string{}
	for key, user := range users {
		auths[key] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":pw:" + user))}
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		panic(err)
	}
	return typed(name, corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, string(data))
}

func typed(name string, t corev1.SecretType, key, data string) corev1.Secret {
	return corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: name},
		Type:       t, Data: map[string][]byte{key: []byte(data)},
	}
}

// resource is the target for which a client requests credentials: host/repository.
type resource string

func (r resource) String() string      { return string(r) }
func (r resource) RegistryStr() string { host, _, _ := strings.Cut(string(r), "/"); return host }

// userFor returns the user that a keychain selects for a resource, and "" for anonymous
// access.
func userFor(t testing.TB, k *Keychain, r resource) string {
	t.Helper()
	auth, err := k.Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	config, err := auth.Authorization()
	if err != nil {
		t.Fatal(err)
	}
	if config.Username != "" && config.Password != "pw:"+config.Username {
		t.Errorf("the password of %s is %q", config.Username, config.Password)
	}
	return config.Username
}

func newKeychain(t testing.TB, secrets ...corev1.Secret) *Keychain {
	t.Helper()
	k, err := New(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Credentials match the exact host and port, or nothing.
//
// hardening: A9
func TestResolve(t *testing.T) {
	first := secretOf("first", map[string]string{
		"reg.acme.test": "host", "reg.acme.test/team": "team", "reg.acme.test/team/deep": "deep",
		"reg.acme.test:5000": "port", "https://url.test/v1/": "url", "http://plain.test": "plain", "v2.test/v2/": "v2",
		"*.glob.test": "glob", "Upper.Test": "upper", "bücher.test": "idn", "[::1]:5000": "six", "": "none",
		"https://index.docker.io/v1/": "hub",
	})
	second := secretOf("second", map[string]string{
		"reg.acme.test": "second", "reg.acme.test/team/deep/er": "deeper", "only.test": "only",
	})
	k := newKeychain(t, first, second)
	for r, want := range map[resource]string{
		"reg.acme.test":                  "host",
		"reg.acme.test/other/x":          "host",
		"reg.acme.test/team/x":           "team",
		"reg.acme.test/team/deep/x":      "deep",
		"reg.acme.test/team/deep/er":     "deeper",
		"reg.acme.test:5000/team/x":      "port",
		"reg.acme.test:443/x":            "",
		"reg.acme.test.evil.test/x":      "",
		"evil.reg.acme.test/x":           "",
		"url.test/x":                     "url",
		"plain.test/x":                   "plain",
		"v2.test/x":                      "v2",
		"a.glob.test/x":                  "",
		"*.glob.test/x":                  "",
		"upper.test/x":                   "upper",
		"xn--bcher-kva.test/x":           "idn",
		"[::1]:5000/x":                   "six",
		"only.test/x":                    "only",
		"docker.io/library/x":            "hub",
		"index.docker.io/library/x":      "hub",
		"registry-1.docker.io/library/x": "hub",
		"auth.docker.io":                 "",
		"":                               "",
	} {
		if got := userFor(t, k, r); got != want {
			t.Errorf("for %s we are %q, want %q", r, got, want)
		}
	}
}

func TestAbsentOptionalDependency(t *testing.T) {
	var none *Keychain
	for _, k := range []*Keychain{none, {}, newKeychain(t)} {
		if got := userFor(t, k, "reg.acme.test/x"); got != "" || k.Fingerprint() != "" {
			t.Errorf("we are %q, %q", got, k.Fingerprint())
		}
	}
}

func TestForms(t *testing.T) {
	const encoded = "bWU6cHc6bWU=" // me:pw:me
	for name, tc := range map[string]struct {
		secret corev1.Secret
		want   authn.AuthConfig
	}{
		"Auth": {
			typed("s", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"r.test":{"auth":"`+encoded+`"}}}`),
			authn.AuthConfig{Username: "me", Password: "pw:me"},
		},
		"Unpadded": {
			typed("s", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"r.test":{"auth":"bWU6cHc6bWU"}}}`),
			authn.AuthConfig{Username: "me", Password: "pw:me"},
		},
		"Plain": {typed(
			"s", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson",
			`{"auths":{"r.test":{"username":"me","password":"pw","email":"x"}}}`,
		), authn.AuthConfig{Username: "me", Password: "pw"}},
		"AuthWins": {typed(
			"s", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson",
			`{"auths":{"r.test":{"username":"you","password":"no","auth":"`+encoded+`"}}}`,
		), authn.AuthConfig{Username: "me", Password: "pw:me"}},
		"Tokens": {typed(
			"s", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson",
			`{"auths":{"r.test":{"identitytoken":"i","registrytoken":"r"}}}`,
		), authn.AuthConfig{IdentityToken: "i", RegistryToken: "r"}},
		"Old": {
			typed("s", corev1.SecretTypeDockercfg, ".dockercfg", `{"r.test":{"auth":"`+encoded+`"}}`),
			authn.AuthConfig{Username: "me", Password: "pw:me"},
		},
		"Empty": {
			typed("s", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"r.test":{}},"credsStore":"x"}`),
			authn.AuthConfig{},
		},
		"NoAuths": {typed("s", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{}`), authn.AuthConfig{}},
	} {
		t.Run(name, func(t *testing.T) {
			auth, err := newKeychain(t, tc.secret).Resolve(resource("r.test/x"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := auth.Authorization(); err != nil || *got != tc.want {
				t.Errorf("got %+v (%v), want %+v", got, err, tc.want)
			}
		})
	}
}

// A malformed secret is named, and its content is not disclosed.
//
// hardening: L7
func TestMalformed(t *testing.T) {
	for name, s := range map[string]corev1.Secret{
		"Type":      typed("bad", corev1.SecretTypeOpaque, ".dockerconfigjson", `{"auths":{}}`),
		"NoKey":     typed("bad", corev1.SecretTypeDockerConfigJson, ".dockercfg", `{}`),
		"NotJSON":   typed("bad", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `hunter2`),
		"WrongForm": typed("bad", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"r.test":"hunter2"}}`),
		"NotBase64": typed(
			"bad", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"r.test":{"auth":"hunter2!"}}}`,
		),
		"NoColon": typed("bad", corev1.SecretTypeDockercfg, ".dockercfg", `{"r.test":{"auth":"aHVudGVyMg=="}}`),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New([]corev1.Secret{s})
			if !errors.Is(err, ErrPullSecretInvalid) ||
				!strings.Contains(err.Error(), "the pull secret bad in the namespace crossplane-system") {
				t.Fatalf("got %v", err)
			}
			for _, leak := range []string{"hunter2", "aHVudGVyMg", "r.test"} {
				if strings.Contains(errcode.Message(err), leak) {
					t.Errorf("%q is in %q", leak, errcode.Message(err))
				}
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	a, b := secretOf("a", map[string]string{"r.test": "a"}), secretOf("b", map[string]string{"r.test": "b", "s.test": "b"})
	same := [][2]*Keychain{
		{newKeychain(t, b), newKeychain(t, secretOf("c", map[string]string{"s.test/": "b", "https://r.test": "b"}))},
	}
	for i, k := range same {
		if k[0].Fingerprint() != k[1].Fingerprint() || k[0].Fingerprint() == "" {
			t.Errorf("pair %d should be the same", i)
		}
	}
	seen := map[string]bool{}
	for i, k := range []*Keychain{
		newKeychain(t), newKeychain(t, a), newKeychain(t, b), newKeychain(t, a, b), newKeychain(t, b, a),
		newKeychain(t, secretOf("p", map[string]string{"r.test/p": "a"})),
		newKeychain(t, secretOf("p", map[string]string{"r.test:5000": "a"})),
	} {
		f := k.Fingerprint()
		if seen[f] {
			t.Errorf("keychain %d has the fingerprint of another", i)
		}
		if strings.Contains(fmt.Sprint(f), "pw") {
			t.Error("the fingerprint tells a secret")
		}
		seen[f] = true
	}
}

func FuzzSecret(f *testing.F) {
	for _, s := range []string{
		`{"auths":{"r.test":{"auth":"bWU6cHc="}}}`,
		`{"auths":{"https://index.docker.io/v1/":{"username":"u","password":"p"}}}`,
		`{"r.test:5000/x":{"auth":"bWU6cHc"}}`, `{"auths":{"":{}}}`, `{`, `{"auths":{"r.test":{"auth":"AA=="}}}`,
	} {
		f.Add([]byte(s), "r.test/x")
	}
	f.Fuzz(func(t *testing.T, data []byte, target string) {
		for _, s := range []corev1.Secret{
			typed("s", corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, string(data)),
			typed("s", corev1.SecretTypeDockercfg, corev1.DockerConfigKey, string(data)),
		} {
			k, err := New([]corev1.Secret{s})
			if err != nil {
				if !errors.Is(err, ErrPullSecretInvalid) {
					t.Fatalf("unclassified: %v", err)
				}
				continue
			}
			auth, err := k.Resolve(resource(target))
			if err != nil {
				t.Fatal(err)
			}
			if auth == authn.Anonymous {
				continue
			}
			// Credentials are only sent to hosts that the secret names.
			host := canonical(resource(target).RegistryStr())
			for _, e := range k.entries {
				if e.host == host {
					return
				}
			}
			t.Fatalf("%q got the credentials of another host", target)
		}
	})
}
