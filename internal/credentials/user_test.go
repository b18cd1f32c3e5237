package credentials

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// users returns the users of the credentials for a resource, in their order.
func users(t testing.TB, k remote.Candidates, r resource) []string {
	t.Helper()
	var all []string
	for auth, err := range k.Candidates(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, auth.Username)
	}
	return all
}

// home makes a folder the home folder of a user without any configuration.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	for _, name := range []string{"DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	return dir
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// The command and the manager select the same credentials from the same file: all that match, the longest path first.
func TestFilesAndSecretsMatchAlike(t *testing.T) {
	keys := []string{
		"reg.acme.test", "reg.acme.test/team-a", "reg.acme.test/team-b", "https://reg.acme.test/team-b/pkg/",
		"reg.acme.test/team",
		"reg.acme.test:5000", "reg.acme.test:5000/team-a", "only.acme.test/team-a", "https://index.docker.io/v1/",
		"docker.io/acme", "*.acme.test",
	}
	all := map[string]string{}
	for _, key := range keys {
		all[key] = userOf(key)
	}
	secret := secretOf("s", all)
	writeFile(t, filepath.Join(home(t), ".docker", "config.json"), string(secret.Data[corev1.DockerConfigJsonKey]), 0o600)
	k := newKeychain(t, secret)
	for r, want := range map[resource][]string{
		"reg.acme.test/team-a/pkg":      {"reg.acme.test/team-a", "reg.acme.test"},
		"reg.acme.test/team-b/pkg":      {"https://reg.acme.test/team-b/pkg/", "reg.acme.test/team-b", "reg.acme.test"},
		"reg.acme.test/team-b/pkg2":     {"reg.acme.test/team-b", "reg.acme.test"},
		"reg.acme.test/team/a/b":        {"reg.acme.test/team", "reg.acme.test"},
		"reg.acme.test/team-c/pkg":      {"reg.acme.test"},
		"reg.acme.test/team-a":          {"reg.acme.test/team-a", "reg.acme.test"},
		"reg.acme.test":                 {"reg.acme.test"},
		"reg.acme.test:5000/team-a/pkg": {"reg.acme.test:5000/team-a", "reg.acme.test:5000"},
		"reg.acme.test:5001/team-a/pkg": nil,
		"only.acme.test/team-a/pkg":     {"only.acme.test/team-a"},
		"only.acme.test/team-b/pkg":     nil,
		"only.acme.test":                nil,
		"index.docker.io/acme/pkg":      {"docker.io/acme", "https://index.docker.io/v1/"},
		"other.acme.test/x":             nil,
	} {
		for i, key := range want {
			want[i] = userOf(key)
		}
		if got := users(t, User{}, r); !slices.Equal(got, want) {
			t.Errorf("%s in a file: got %v, want %v", r, got, want)
		}
		if got := users(t, k, r); !slices.Equal(got, want) {
			t.Errorf("%s in a secret: got %v, want %v", r, got, want)
		}
	}
}

// userOf returns the name of the user of an entry: names contain no colon.
func userOf(key string) string { return strings.ReplaceAll(key, ":", ";") }

// The user's configuration is the file of Docker, or that of Podman.
func TestPlacesOfTheUsersFile(t *testing.T) {
	for _, docker := range []bool{true, false} {
		dir := home(t)
		file := func(path string, user string) string {
			secret := secretOf("s", map[string]string{"r.test": user})
			writeFile(t, path, string(secret.Data[corev1.DockerConfigJsonKey]), 0o600)
			return path
		}
		check := func(want string) {
			t.Helper()
			if got := strings.Join(users(t, User{}, "r.test/x"), " "); got != want {
				t.Errorf("got the credentials of %q, want %q", got, want)
			}
		}
		check("")
		file(filepath.Join(dir, ".config", "containers", "auth.json"), "podman")
		check("podman")
		t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "xdg"))
		file(filepath.Join(dir, "xdg", "containers", "auth.json"), "xdg")
		check("xdg")
		t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "run"))
		file(filepath.Join(dir, "run", "containers", "auth.json"), "runtime")
		check("runtime")
		t.Setenv("REGISTRY_AUTH_FILE", file(filepath.Join(dir, "auth.json"), "named"))
		check("named")
		if docker {
			file(filepath.Join(dir, ".docker", "config.json"), "docker")
			check("docker")
		}
		t.Setenv("DOCKER_CONFIG", filepath.Dir(file(filepath.Join(dir, "other", "config.json"), "other")))
		check("other")
	}
}

// Credential helpers are asked for the keys that match, before the file.
func TestCredentialHelpers(t *testing.T) {
	dir := home(t)
	// The helper knows each server but one, and its user is the server.
	writeFile(t, filepath.Join(dir, "bin", "docker-credential-test"), `#!/bin/sh
read server
[ "$server" = unknown.test ] && { echo 'credentials not found in native keychain'; exit 1; }
printf '{"ServerURL":"%s","Username":"helper of %s","Secret":"x"}' "$server" "$server"
`, 0o700)
	t.Setenv("PATH", filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	const written = `{"auth":"d3JpdHRlbjp4"}` // written:x
	for config, want := range map[string]map[resource]string{
		`{"credsStore":"test","auths":{"r.test/team":{},"r.test":` + written + `,"unknown.test":` + written + `}}`: {
			"r.test/team/x":      "helper of r.test/team, helper of r.test, written",
			"r.test/other/x":     "helper of r.test, written",
			"unknown.test/x":     "written",
			"index.docker.io/x":  "helper of https://index.docker.io/v1/",
			"never.seen.test/xy": "helper of never.seen.test",
		},
		`{"credHelpers":{"r.test":"test"},"auths":{"r.test/team":` + written + `,"s.test":` + written + `}}`: {
			"r.test/team/x": "written, helper of r.test",
			"s.test/x":      "written",
			"t.test/x":      "",
		},
	} {
		writeFile(t, filepath.Join(dir, ".docker", "config.json"), config, 0o600)
		for r, want := range want {
			if got := strings.Join(users(t, User{}, r), ", "); got != want {
				t.Errorf("%s: %s: got %q, want %q", config, r, got, want)
			}
		}
	}
}

// A damaged file is named, and its content is not disclosed. A damaged entry does not affect other hosts.
func TestDamagedUserFile(t *testing.T) {
	file := filepath.Join(home(t), ".docker", "config.json")
	writeFile(t, file, `{"auths":hunter2}`, 0o600)
	_, err := User{}.Resolve(resource("r.test/x"))
	if err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	writeFile(t, file, `{"auths":{"r.test":{"auth":"hunter2!"},"s.test":{"auth":"bWU6cHc="}}}`, 0o600)
	if _, err := (User{}).Resolve(resource("r.test/x")); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if got := users(t, User{}, "s.test/x"); !slices.Equal(got, []string{"me"}) {
		t.Errorf("got %v", got)
	}
	writeFile(t, file, "", 0o600)
	if auth, err := (User{}).Resolve(resource("r.test/x")); err != nil || auth != authn.Anonymous {
		t.Errorf("an empty file: %v, %v", auth, err)
	}
}

// Secrets that are missing or malformed do not affect the others, whatever their order, and are reported last.
func TestUnusableSecretsBesideOthers(t *testing.T) {
	bad := typed("bad", corev1.SecretTypeOpaque, ".dockerconfigjson", `{}`)
	good, other := secretOf("good", map[string]string{"r.test": "good"}),
		secretOf("other", map[string]string{"r.test": "other"})
	missing := ErrPullSecretNotFound.New(nil, "pull secret absent does not exist")
	for _, secrets := range [][]corev1.Secret{{bad, good, other}, {good, bad, other}, {good, other, bad}} {
		k, err := New(secrets, missing)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for auth, err := range k.Candidates(t.Context(), resource("r.test/x")) {
			if err != nil {
				got = append(got, err.Error())
			} else {
				got = append(got, auth.Username)
			}
		}
		if len(got) != 3 || got[0] != "good" || got[1] != "other" || !strings.Contains(got[2], "absent") ||
			!strings.Contains(got[2], "bad") {
			t.Errorf("got %q", got)
		}
	}
}
