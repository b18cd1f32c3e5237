package flags

import (
	"os"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// WriteKeychain returns the credentials of a command that writes to registries: the token for the registry
// of a local control plane, and the user's credentials for all others.
func (f DataDirFlag) WriteKeychain() authn.Keychain {
	return remote.FirstKeychain(localKeychain{f}, credentials.User{})
}

// A localKeychain provides the tokens of the control planes that run on this machine.
type localKeychain struct{ flag DataDirFlag }

// Resolve implements [authn.Keychain].
func (k localKeychain) Resolve(target authn.Resource) (authn.Authenticator, error) {
	token, err := k.flag.RegistryToken(target.RegistryStr())
	if err != nil || token == "" {
		return authn.Anonymous, err
	}
	return authn.FromConfig(authn.AuthConfig{Username: up.RegistryUser, Password: token}), nil
}

// RegistryToken returns the token of the control plane that serves the registry at host:port, and "" if none
// of the data directories belongs to it. It ignores a directory that is not a data directory, unless the
// user named it.
func (f DataDirFlag) RegistryToken(hostport string) (string, error) {
	if f.DataDir != "" {
		return up.RegistryToken(f.DataDir, hostport)
	}
	for _, dir := range f.Candidates("") {
		if token, err := up.RegistryToken(dir, hostport); err == nil && token != "" {
			return token, nil
		}
	}
	return "", nil
}

// LocalRegistry returns the host:port of the registry of the control plane that runs on this machine, or "".
func LocalRegistry() string {
	for _, dir := range (DataDirFlag{DataDir: os.Getenv(datadir.Variable)}).Candidates("") {
		if report, err := up.Status(dir); err == nil && report.Ready {
			return report.State.Registry
		}
	}
	return ""
}
