// Package credentials turns Kubernetes pull secrets into registry credentials, each of
// which is only sent to its own registry.
package credentials

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// Keychain holds the credentials of pull secrets. The zero value and nil are empty. A
// Keychain is immutable and safe for concurrent use.
//
// An entry is for one host with one port, exactly as written: an entry for
// registry.example.com does not match registry.example.com:5000. An entry with a path
// matches the repository with this name and those below it. All matching entries are
// tried, the one with the longest path first, and of equal ones that of the first secret,
// as in the kubelet. Wildcards in hosts, which the kubelet supports, match nothing: they
// would send credentials to hosts that the secret does not name.
type Keychain struct {
	// entries are in match order: by host, then the longest path first, then the order of
	// the secrets.
	entries []entry
	// unusable are the errors of the secrets that cannot be used beside others.
	unusable error
}

// entry is the credentials for a host or for a part of it.
type entry struct {
	host, path string
	auth       authn.AuthConfig
}

// New returns a keychain of pull secrets of the types kubernetes.io/dockerconfigjson and
// kubernetes.io/dockercfg. Missing are the errors of secrets that could not be read. A
// secret that is missing or malformed does not affect the others; New fails if no secret
// is usable.
func New(secrets []corev1.Secret, missing ...error) (*Keychain, error) {
	k, usable := &Keychain{unusable: errors.Join(missing...)}, 0
	for i := range secrets {
		entries, err := readSecret(&secrets[i])
		if err != nil {
			k.unusable = errors.Join(k.unusable, err)
			continue
		}
		usable++
		k.entries = append(k.entries, entries...)
	}
	if usable == 0 && k.unusable != nil {
		return nil, k.unusable
	}
	slices.SortStableFunc(k.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(len(b.path), len(a.path)), cmp.Compare(a.path, b.path))
	})
	return k, nil
}

// Resolve implements [authn.Keychain]. It returns the first matching credentials.
func (k *Keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	return remote.FirstCandidate(context.Background(), k, r)
}

// Candidates implements [remote.Candidates]. The errors of unusable secrets come last.
func (k *Keychain) Candidates(_ context.Context, r authn.Resource) iter.Seq2[authn.AuthConfig, error] {
	return func(yield func(authn.AuthConfig, error) bool) {
		host, repository := split(r)
		if k == nil || host == "" {
			return
		}
		for _, e := range k.entries {
			if e.host == host && covers(e.path, repository) && !yield(e.auth, nil) {
				return
			}
		}
		if k.unusable != nil {
			yield(authn.AuthConfig{}, k.unusable)
		}
	}
}

// split returns the canonical host and the repository of a resource. The host is empty if it is not valid.
func split(r authn.Resource) (host, repository string) {
	_, repository, _ = strings.Cut(r.String(), "/")
	return canonical(r.RegistryStr()), repository
}

// covers reports whether a path is that of a repository, or above it. An empty path covers all repositories.
func covers(path, repository string) bool {
	rest, found := strings.CutPrefix(repository, path)
	return found && (path == "" || rest == "" || rest[0] == '/')
}

// Fingerprint returns a hash that is equal for keychains with the same credentials, and
// "" for an empty keychain. Do not display it: a weak password could be guessed from it.
func (k *Keychain) Fingerprint() string {
	if k == nil || len(k.entries) == 0 && k.unusable == nil {
		return ""
	}
	h := sha256.New()
	text := func(s string) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(s))) // Writes to a hash never fail.
		h.Write([]byte(s))
	}
	if k.unusable != nil {
		text(k.unusable.Error())
	}
	for _, e := range k.entries {
		for _, s := range []string{
			e.host, e.path, e.auth.Username, e.auth.Password, e.auth.IdentityToken, e.auth.RegistryToken,
		} {
			text(s)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
