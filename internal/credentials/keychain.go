// Package credentials gives registries the credentials of Kubernetes pull secrets,
// and each registry only its own.
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

// Keychain holds the credentials of pull secrets. The zero value and nil hold
// none. It never changes, and can be used by many goroutines.
//
// An entry is for one host with one port, exactly as they are written: what is
// for registry.example.com is not for registry.example.com:5000. An entry with a
// path is for the repositories whose names begin with it, and the longest such
// path decides, as it does where nodes pull images. Of two entries that match
// alike, the one of the secret that was named first wins. Shell patterns in hosts,
// which nodes know as well, match nothing here: a pattern sends credentials to
// hosts that nobody named.
type Keychain struct {
	// entries are in the order in which they are asked: by host, then the longest
	// path first, then the order of the secrets.
	entries []entry
}

// entry is the credentials for a host or for a part of it.
type entry struct {
	host, path string
	auth       authn.AuthConfig
}

// New makes a keychain of pull secrets, of the types
// kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg. It fails with
// PullSecretInvalid.
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

// Resolve implements [authn.Keychain]. The answer is anonymous when nothing is
// for the resource.
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

// Fingerprint is the same for keychains that give the same credentials to
// everybody, and differs otherwise. It is empty for a keychain without any. It is
// a hash; still, guesses of a weak password could be checked against it, so it is
// for comparing and not for showing.
func (k *Keychain) Fingerprint() string {
	if k == nil || len(k.entries) == 0 {
		return ""
	}
	h := sha256.New()
	text := func(s string) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(s))) // A hash takes everything.
		h.Write([]byte(s))
	}
	last := entry{}
	for _, e := range k.entries {
		if e.host == last.host && e.path == last.path {
			continue // Nobody is given this one.
		}
		last = e
		for _, s := range []string{e.host, e.path, e.auth.Username, e.auth.Password, e.auth.IdentityToken, e.auth.RegistryToken} {
			text(s)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
