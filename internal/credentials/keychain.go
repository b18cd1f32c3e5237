// Package credentials turns Kubernetes pull secrets into registry credentials, each of
// which is only sent to its own registry.
package credentials

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
)

// Keychain holds the credentials of pull secrets. The zero value and nil are empty. A
// Keychain is immutable and safe for concurrent use.
//
// An entry is for one host with one port, exactly as written: an entry for
// registry.example.com does not match registry.example.com:5000. An entry with a path
// matches the repositories whose names begin with it. The longest path takes precedence,
// as in the kubelet. If two entries match equally, the entry of the first secret takes
// precedence. Wildcards in hosts, which the kubelet supports, match nothing: they would
// send credentials to hosts that the secret does not name.
type Keychain struct {
	// entries are in match order: by host, then the longest path first, then the order of
	// the secrets.
	entries []entry
}

// entry is the credentials for a host or for a part of it.
type entry struct {
	host, path string
	auth       authn.AuthConfig
}

// New returns a keychain of pull secrets of the types kubernetes.io/dockerconfigjson and
// kubernetes.io/dockercfg. It fails with PullSecretInvalid.
func New(secrets ...corev1.Secret) (*Keychain, error) {
	k := &Keychain{}
	for i := range secrets {
		entries, err := readSecret(&secrets[i])
		if err != nil {
			return nil, err
		}
		k.entries = append(k.entries, entries...)
	}
	slices.SortStableFunc(k.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(len(b.path), len(a.path)), cmp.Compare(a.path, b.path))
	})
	return k, nil
}

// Resolve implements [authn.Keychain]. It returns anonymous credentials if no entry
// matches.
func (k *Keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	host := canonical(r.RegistryStr())
	_, path, _ := strings.Cut(r.String(), "/")
	if k == nil || host == "" {
		return authn.Anonymous, nil
	}
	for _, e := range k.entries {
		if e.host == host && strings.HasPrefix(path, e.path) {
			return authn.FromConfig(e.auth), nil
		}
	}
	return authn.Anonymous, nil
}

// Fingerprint returns a hash that is equal for keychains with the same credentials, and
// "" for an empty keychain. Do not display it: a weak password could be guessed from it.
func (k *Keychain) Fingerprint() string {
	if k == nil || len(k.entries) == 0 {
		return ""
	}
	h := sha256.New()
	text := func(s string) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(s))) // Writes to a hash never fail.
		h.Write([]byte(s))
	}
	last := entry{}
	for _, e := range k.entries {
		if e.host == last.host && e.path == last.path {
			continue // No request uses this entry.
		}
		last = e
		for _, s := range []string{e.host, e.path, e.auth.Username, e.auth.Password, e.auth.IdentityToken, e.auth.RegistryToken} {
			text(s)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
