package up

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"
)

const (
	tokenName = "registry.token"
	// RegistryUser is the user name of credentials for the registry. The registry accepts any name,
	// but clients require one.
	RegistryUser = "xpkg"
	// defaultMaxUpload is the default of Options.MaxUpload, in bytes.
	defaultMaxUpload = 4 << 30
	// leastToken is the minimum length of a valid token.
	leastToken = 20
)

// ensureToken returns the token that allows writes to the registry. It creates a missing token, and
// replaces one that is shorter than leastToken, for example after a crash.
func ensureToken(d *datadir.Dir) (string, error) {
	token, err := readToken(d.Path)
	switch {
	case err == nil && len(token) >= leastToken:
		err = os.Chmod(d.File(tokenName), 0o600)
	case err == nil, errors.Is(err, fs.ErrNotExist):
		token = rand.Text()
		err = datadir.WriteFile(d.File(tokenName), []byte(token+"\n"))
	}
	if err != nil {
		return "", ErrDataDirUnusable.New(err, "cannot prepare the token of the registry in %s", d.File(tokenName))
	}
	return token, nil
}

func readToken(dir string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, tokenName))
	return strings.TrimSpace(string(content)), err
}

// listeningRegistry is the content of the file that the process of a control plane writes when it listens on the port
// of the registry. Requests are served a few seconds later, before the control plane is ready.
type listeningRegistry struct {
	PID     int    `json:"pid"`
	Address string `json:"address"`
}

// recordRegistry creates the token of the registry, and records that this process listens on its address.
func recordRegistry(d *datadir.Dir, address string) error {
	if _, err := ensureToken(d); err != nil {
		return err
	}
	if err := datadir.WriteJSON(d.File(datadir.RegistryName), listeningRegistry{os.Getpid(), address}); err != nil {
		return ErrDataDirUnusable.New(err, "cannot record the address of the registry")
	}
	return nil
}

// registryOf returns the host:port on which the process of a data directory listens for the registry, or "".
func registryOf(r Report) string {
	if r.Ready {
		return r.State.Registry
	}
	content, err := os.ReadFile(filepath.Join(r.DataDir, datadir.RegistryName))
	var listening listeningRegistry
	// A killed process has left the address of another process ID.
	if err != nil || json.Unmarshal(content, &listening) != nil || !r.Running || listening.PID != r.PID {
		return ""
	}
	return listening.Address
}

// RegistryToken returns the token that allows writes to the registry at host:port if the control
// plane of a data directory runs or starts, and listens there, and "" otherwise. It never returns the
// token of a control plane that is not running, because another process may listen on its port.
func RegistryToken(dataDir, hostport string) (string, error) {
	report, err := Status(dataDir)
	if err != nil {
		return "", err
	}
	if address := registryOf(report); address == "" || address != hostport {
		return "", nil
	}
	token, err := readToken(report.DataDir)
	if err != nil {
		return "", ErrDataDirUnusable.New(err, "cannot read the token of registry %s", hostport)
	}
	return token, nil
}

// LoginCommand returns the command that stores the credentials for the registry of a control plane
// for docker, crane and skopeo.
func LoginCommand(s State) string { return datadir.Command("xpkg login "+s.Registry, s.DataDir) }

// DownCommand returns the command that stops a control plane in the background.
func DownCommand(s State) string { return datadir.Command("xpkg down", s.DataDir) }
