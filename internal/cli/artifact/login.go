package artifact

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"golang.org/x/term"

	"github.com/xpkg-dev/xpkg/internal/cli/artifact/dockerconfig"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// ErrDockerConfig is the code for credentials that cannot be stored.
var ErrDockerConfig = errcode.Code{
	Name: "DockerConfig", Class: errcode.Unavailable,
	Cause: "The Docker configuration file or its credential helper cannot be used.",
	Fix:   "Correct ~/.docker/config.json, or config.json in DOCKER_CONFIG, or install the credential helper.",
}

// LoginCmd implements `xpkg login`.
type LoginCmd struct {
	Registry      string `arg:"" optional:"" help:"Registry to log in to, for example ghcr.io. Default is docker.io."`
	Username      string `short:"u" placeholder:"NAME" help:"User name. Without it, xpkg uses the token of a local control plane for its registry, and prompts for a user name otherwise."`
	PasswordStdin bool   `help:"Read the password or token from standard input instead of prompting for it."`
	flags.RegistryFlags
	flags.DataDirFlag
}

// Run verifies credentials with the registry, and stores them in Docker's configuration, which all OCI tools
// read.
func (c *LoginCmd) Run(env *terminal.Env) error {
	registry, err := flags.ParseHost(cmp.Or(c.Registry, flags.DefaultRegistry))
	if err != nil {
		return err
	}
	user, secret, err := c.credentials(env, registry)
	if err != nil {
		return err
	}
	if err := c.verify(env.Context, registry, user, secret); err != nil {
		return err
	}
	where, err := keep(env.Context, serverKey(registry), user, secret)
	if err != nil {
		return ErrDockerConfig.New(err, "cannot store the credentials for %s", registry)
	}
	return env.Say("Logged in to %s as %s. The credentials are in %s.\n", registry, terminal.Safe(user), where)
}

// serverKey returns the key of a registry in Docker's configuration.
func serverKey(registry string) string {
	if flags.APIHost(registry) == flags.DockerHubHost {
		return dockerconfig.DockerHub
	}
	return registry
}

// verify checks that the registry accepts the credentials.
func (c *LoginCmd) verify(ctx context.Context, registry, user, secret string) error {
	hosts, roots, err := c.Hosts(ctx, []string{registry})
	if err != nil {
		return err
	}
	client := remote.New(remote.Options{
		Keychain:  oneLogin{authn.FromConfig(authn.AuthConfig{Username: user, Password: secret})},
		UserAgent: "xpkg/" + version.Version, Hosts: hosts, RootCAs: roots,
	})
	defer client.Close()
	err = client.Ping(ctx, registry)
	if errors.Is(err, remote.ErrUnauthorized) {
		return errcode.From(err).
			WithDo("Check the name and the password; many registries require an access token in place of the password.")
	}
	return err
}

// oneLogin is a keychain with the same credentials for every registry. The client uses it only for the
// registry of the login.
type oneLogin struct{ authn.Authenticator }

// Resolve implements authn.Keychain.
func (l oneLogin) Resolve(authn.Resource) (authn.Authenticator, error) { return l.Authenticator, nil }

// keep stores credentials with the configured helper, or in the file.
func keep(ctx context.Context, server, user, secret string) (where string, err error) {
	path, err := dockerconfig.Path()
	if err != nil {
		return "", err
	}
	file, err := fileutil.Await(ctx, func() (*dockerconfig.File, error) { return dockerconfig.Load(path) })
	if err != nil {
		return "", err
	}
	helper, err := file.Helper(server)
	if err != nil {
		return "", err
	}
	if helper == "" {
		return file.Path() + ", not encrypted", errors.Join(file.Set(server, user, secret), file.Save())
	}
	if err := dockerconfig.Store(ctx, helper, server, user, secret); err != nil {
		return "", err
	}
	if err := file.SetKept(server); err != nil {
		return "", err
	}
	return "the credential helper " + helper, file.Save()
}

// credentials returns the credentials for the registry of a local control plane, or reads the name and the
// password from the flags, standard input or a terminal.
func (c *LoginCmd) credentials(env *terminal.Env, registry string) (user, secret string, err error) {
	if c.Username == "" && !c.PasswordStdin {
		if token, err := c.RegistryToken(registry); token != "" || err != nil {
			return up.RegistryUser, token, err
		}
	}
	if c.PasswordStdin {
		if c.Username == "" {
			return "", "", terminal.ErrUsage.New(nil, "--password-stdin needs --username")
		}
		secret, err := readSecret(env.Input())
		return c.Username, secret, err
	}
	console, ok := env.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(console.Fd())) {
		return "", "", terminal.ErrUsage.New(nil, "standard input is not a terminal, so the password cannot be prompted for").
			WithDo("Pass --username, and the password on standard input with --password-stdin.")
	}
	user = c.Username
	if user == "" {
		fmt.Fprint(env.Stderr, "Username: ")
		line, err := bufio.NewReader(env.Input()).ReadString('\n')
		if err != nil {
			return "", "", location.ErrReadFile.New(err, "cannot read the name")
		}
		user = strings.TrimSpace(line)
	}
	fmt.Fprint(env.Stderr, "Password: ")
	typed, err := env.ReadPassword(console)
	fmt.Fprintln(env.Stderr)
	if err != nil {
		return "", "", location.ErrReadFile.New(err, "cannot read the password")
	}
	return user, typed, notEmpty(user, typed)
}

// maxSecret is the maximum size of a password or token. Tokens of cloud registries have a few thousand bytes.
const maxSecret = 1 << 20

func readSecret(r io.Reader) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxSecret+1))
	if err != nil {
		return "", location.ErrReadFile.New(err, "cannot read the password")
	}
	if len(raw) > maxSecret {
		return "", terminal.ErrUsage.New(nil, "the password is larger than %d bytes", maxSecret)
	}
	secret := strings.TrimRight(string(raw), "\r\n")
	return secret, notEmpty(secret)
}

func notEmpty(values ...string) error {
	for _, v := range values {
		if v == "" {
			return terminal.ErrUsage.New(nil, "the name or the password is empty").
				WithDo(
					"Pass the name with --username, and type the password at the prompt or pass it on standard input with --password-stdin.",
				)
		}
	}
	return nil
}
