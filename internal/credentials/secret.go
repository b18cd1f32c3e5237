package credentials

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrPullSecretInvalid is the code for a secret that is not a valid pull secret. The
// error names the secret and does not disclose its content.
var ErrPullSecretInvalid = errcode.Code{
	Name: "PullSecretInvalid", Class: errcode.Unauthorized,
	Cause: "A secret that is referenced as a pull secret has the wrong type or malformed content.",
	Fix:   "Recreate the secret, for example with `kubectl create secret docker-registry`.",
}

// ErrPullSecretNotFound is the code for a pull secret that does not exist.
var ErrPullSecretNotFound = errcode.Code{
	Name: "PullSecretNotFound", Class: errcode.NotFound,
	Cause: "A package or an ImageConfig references a pull secret that does not exist in the namespace of the package manager.",
	Fix:   "Create the secret in that namespace, or correct its name.",
}

// entryJSON is one entry of a pull secret (Docker's config.json, "auths").
type entryJSON struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// readSecret returns the entries of a secret, ordered by key.
func readSecret(s *corev1.Secret) ([]entry, error) {
	auths, err := authsOf(s)
	if err != nil {
		return nil, invalid(s, err)
	}
	var entries []entry
	for _, key := range slices.Sorted(maps.Keys(auths)) {
		host, path := place(key)
		if host == "" {
			continue // It is not a valid registry.
		}
		auth, err := auths[key].credentials()
		if err != nil {
			return nil, invalid(s, err)
		}
		if auth == (authn.AuthConfig{}) {
			continue // Docker writes empty entries for credentials in a helper.
		}
		entries = append(entries, entry{host: host, path: path, auth: auth})
	}
	return entries, nil
}

// authsOf parses the content of a secret by its type (Kubernetes documentation, "Docker
// config Secrets"). It does not wrap errors of the JSON decoder, because they quote the
// content.
func authsOf(s *corev1.Secret) (map[string]entryJSON, error) {
	var config struct {
		Auths map[string]entryJSON `json:"auths"`
	}
	var key string
	var into any
	switch s.Type {
	case corev1.SecretTypeDockerConfigJson:
		key, into = corev1.DockerConfigJsonKey, &config
	case corev1.SecretTypeDockercfg:
		key, into = corev1.DockerConfigKey, &config.Auths
	default:
		return nil, errors.New("its type is neither " + string(corev1.SecretTypeDockerConfigJson) + " nor " +
			string(corev1.SecretTypeDockercfg))
	}
	data, ok := s.Data[key]
	if !ok {
		return nil, errors.New("it has no " + key)
	}
	if json.Unmarshal(data, into) != nil {
		return nil, errors.New("its " + key + " is not the JSON of a Docker configuration")
	}
	return config.Auths, nil
}

// credentials returns the credentials of an entry. The encoded form takes precedence over
// the plain one, as in Docker.
func (e entryJSON) credentials() (authn.AuthConfig, error) {
	auth := authn.AuthConfig{
		Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken,
	}
	if e.Auth == "" {
		return auth, nil
	}
	plain, err := base64.StdEncoding.DecodeString(e.Auth)
	if err != nil {
		plain, err = base64.RawStdEncoding.DecodeString(e.Auth)
	}
	user, password, ok := strings.Cut(string(plain), ":")
	if err != nil || !ok {
		return authn.AuthConfig{}, errors.New("an auth in it is not the base64 of user:password")
	}
	// Old versions of Docker pad passwords with zero bytes.
	auth.Username, auth.Password = user, strings.Trim(password, "\x00")
	return auth, nil
}

func invalid(s *corev1.Secret, why error) error {
	return ErrPullSecretInvalid.New(why, "cannot use the pull secret %s in the namespace %s", s.Name, s.Namespace)
}
