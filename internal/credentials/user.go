package credentials

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// User is the keychain of the user's configuration of Docker or Podman, with the entries and the credential helpers
// of the file. Entries match as those of pull secrets do, see [Keychain]. The file is read for each request of
// credentials, because it can change.
type User struct{}

// Resolve implements [authn.Keychain].
func (u User) Resolve(r authn.Resource) (authn.Authenticator, error) {
	return remote.FirstCandidate(context.Background(), u, r)
}

// Candidates implements [remote.Candidates].
func (u User) Candidates(ctx context.Context, r authn.Resource) iter.Seq2[authn.AuthConfig, error] {
	return func(yield func(authn.AuthConfig, error) bool) {
		path := userFile()
		file, err := readUserFile(path)
		if err != nil {
			yield(authn.AuthConfig{}, fmt.Errorf("cannot read %s: %w", path, err))
			return
		}
		for _, key := range file.keys(r) {
			for _, read := range []func() (authn.AuthConfig, error){
				func() (authn.AuthConfig, error) { return file.stored(ctx, key) },
				file.Auths[key].credentials,
			} {
				auth, err := read()
				if (err != nil || auth != authn.AuthConfig{}) && !yield(auth, err) {
					return
				}
			}
		}
	}
}

// configFile is the part of a configuration file of Docker that concerns credentials.
type configFile struct {
	Auths       map[string]entryJSON `json:"auths"`
	CredsStore  string               `json:"credsStore"`
	CredHelpers map[string]string    `json:"credHelpers"`
}

func readUserFile(path string) (f configFile, err error) {
	raw, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) || err == nil && len(raw) == 0 {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if json.Unmarshal(raw, &f) != nil {
		return f, errors.New("it is not the JSON of a Docker configuration") // The error of the decoder quotes the content.
	}
	return f, nil
}

// keys returns the keys of the entries and helpers that match a resource, the longest path first, and the key of its
// host if a helper stores all credentials.
func (f configFile) keys(r authn.Resource) []string {
	host, repository := split(r)
	all := slices.AppendSeq(slices.Collect(maps.Keys(f.Auths)), maps.Keys(f.CredHelpers))
	if f.CredsStore != "" {
		all = append(all, helperKey(host))
	}
	all = slices.DeleteFunc(all, func(key string) bool {
		h, path := place(key)
		return h == "" || h != host || !covers(path, repository)
	})
	slices.SortFunc(all, func(a, b string) int {
		_, left := place(a)
		_, right := place(b)
		return cmp.Or(cmp.Compare(len(right), len(left)), cmp.Compare(a, b))
	})
	return slices.Compact(all)
}

// stored returns the credentials of a key in a credential helper, and none if no helper has them.
func (f configFile) stored(ctx context.Context, key string) (authn.AuthConfig, error) {
	if f.CredsStore == "" && f.CredHelpers[key] == "" {
		return authn.AuthConfig{}, nil
	}
	found, err := authn.Resolve(ctx, authn.DefaultKeychain, server(key))
	if err != nil {
		return authn.AuthConfig{}, err
	}
	auth, err := authn.Authorization(ctx, found)
	if err != nil {
		return authn.AuthConfig{}, err
	}
	return *auth, nil
}

// helperKey returns the key of a host in a credential helper.
func helperKey(host string) string {
	if host == dockerHub[0] {
		return authn.DefaultAuthKey
	}
	return host
}

// server is the resource for the key of a credential helper.
type server string

// String returns the key.
func (s server) String() string { return string(s) }

// RegistryStr returns the key.
func (s server) RegistryStr() string { return string(s) }

// userFile returns the path of the user's configuration, or "" if there is none: the file of Docker, or, without it,
// that of Podman.
func userFile() string {
	home, _ := os.UserHomeDir()
	orHome := func(dir, otherwise string) string {
		if dir == "" && home != "" {
			return filepath.Join(home, otherwise)
		}
		return dir
	}
	for _, f := range []struct{ dir, name string }{
		{orHome(os.Getenv("DOCKER_CONFIG"), ".docker"), "config.json"},
		{os.Getenv("REGISTRY_AUTH_FILE"), ""},
		{os.Getenv("XDG_RUNTIME_DIR"), "containers/auth.json"},
		{orHome(os.Getenv("XDG_CONFIG_HOME"), ".config"), "containers/auth.json"},
	} {
		path := filepath.Join(f.dir, f.name)
		if info, err := os.Stat(path); f.dir != "" && err == nil && !info.IsDir() {
			return path
		}
	}
	return ""
}
