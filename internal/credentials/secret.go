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

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrPullSecretInvalid is the failure of a secret that is no pull secret. It
// names the secret and says nothing of what is in it.
var ErrPullSecretInvalid = failure.Register(failure.Code{
	Name: "PullSecretInvalid", Class: failure.Unauthorized,
	Cause: "A secret that is named as a pull secret has another type, or its content is not what its type asks for.",
	Fix:   "Make the secret again, for example with kubectl create secret docker-registry.",
})

// ErrPullSecretNotFound is the failure of a pull secret that does not exist.
var ErrPullSecretNotFound = failure.Register(failure.Code{
	Name: "PullSecretNotFound", Class: failure.NotFound,
	Cause: "A package or an ImageConfig names a pull secret that is not in the namespace of the package manager.",
	Fix:   "Create the secret in that namespace, or correct its name.",
})

// entryJSON is one entry of a pull secret (Docker's config.json, "auths").
type entryJSON struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// readSecret gives the entries of a secret, in the order of their keys.
func readSecret(s *corev1.Secret) ([]entry, error) {
	auths, err := authsOf(s)
	if err != nil {
		return nil, invalid(s, err)
	}
	var entries []entry
	for _, key := range slices.Sorted(maps.Keys(auths)) {
		host, path := place(key)
		if host == "" {
			continue // It cannot be for any registry that we speak to.
		}
		auth, err := auths[key].credentials()
		if err != nil {
			return nil, invalid(s, err)
		}
		if auth == (authn.AuthConfig{}) {
			continue // Docker leaves these where it keeps the credentials elsewhere.
		}
		entries = append(entries, entry{host: host, path: path, auth: auth})
	}
	return entries, nil
}

// authsOf reads the content of a secret by its type (Kubernetes documentation,
// "Docker config Secrets"). Errors say nothing of the content: those of the JSON
// reader quote it.
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
		return nil, errors.New("its type is neither " + string(corev1.SecretTypeDockerConfigJson) + " nor " + string(corev1.SecretTypeDockercfg))
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

// credentials are those of an entry; the encoded form wins over the plain one, as
// it does for Docker.
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
	// Old versions of Docker fill passwords up with zero bytes.
	auth.Username, auth.Password = user, strings.Trim(password, "\x00")
	return auth, nil
}

func invalid(s *corev1.Secret, why error) error {
	return ErrPullSecretInvalid.New(why, "cannot use the pull secret %s in the namespace %s", s.Name, s.Namespace)
}
