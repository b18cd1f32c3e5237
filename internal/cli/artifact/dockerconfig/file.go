// Package dockerconfig changes the credentials in the configuration file of Docker, which all OCI tools
// share. It stores and removes credentials; a keychain reads them.
package dockerconfig

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
)

// DockerHub is the key of Docker Hub, which for historical reasons is not its host.
const DockerHub = "https://index.docker.io/v1/"

// File is a configuration file.
type File struct {
	path string
	top  object
}

// Path returns the path of the configuration file: in the folder of DOCKER_CONFIG, or in .docker in the home
// folder.
func Path() (string, error) {
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".docker")
	}
	return filepath.Join(dir, "config.json"), nil
}

// Load reads a configuration file. A missing file is empty. Load follows symbolic links, so that Save keeps
// them.
func Load(path string) (*File, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f := &File{path: path}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(raw, &f.top); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return f, nil
}

// Path returns the path of the file, with symbolic links resolved.
func (f *File) Path() string { return f.path }

// Helper returns the name of the helper that stores the credentials for a server, or "" if the file stores
// them.
func (f *File) Helper(server string) (string, error) {
	var helpers map[string]string
	if err := f.top.get("credHelpers", &helpers); err != nil {
		return "", fmt.Errorf("credHelpers of %s: %w", f.path, err)
	}
	if helper, ok := helpers[server]; ok {
		return helper, nil
	}
	var store string
	if err := f.top.get("credsStore", &store); err != nil {
		return "", fmt.Errorf("credsStore of %s: %w", f.path, err)
	}
	return store, nil
}

// Set stores credentials for a server in the file.
func (f *File) Set(server, user, secret string) error {
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + secret))
	return f.setAuth(server, map[string]string{"auth": auth})
}

// SetKept records that a helper stores the credentials for a server.
func (f *File) SetKept(server string) error { return f.setAuth(server, map[string]string{}) }

func (f *File) setAuth(server string, value map[string]string) error {
	auths, err := f.auths()
	if err != nil {
		return err
	}
	if err := auths.set(server, value); err != nil {
		return err
	}
	return f.top.set("auths", auths)
}

// Remove removes the credentials for a server, under all names that tools use for it, and reports whether there were
// any.
func (f *File) Remove(server string) (bool, error) {
	auths, err := f.auths()
	if err != nil {
		return false, err
	}
	found := false
	for _, name := range spellings(server) {
		found = auths.remove(name) || found
	}
	if !found {
		return false, nil
	}
	return true, f.top.set("auths", auths)
}

// spellings returns the keys that tools use for a server.
func spellings(server string) []string {
	names := []string{server}
	host := strings.TrimPrefix(server, "https://")
	host, _, _ = strings.Cut(host, "/")
	hosts := []string{host}
	if server == DockerHub {
		hosts = append(hosts, "docker.io", "registry-1.docker.io")
	}
	for _, h := range hosts {
		for _, scheme := range []string{"", "https://", "http://"} {
			for _, path := range []string{"", "/", "/v1/", "/v2/"} {
				names = append(names, scheme+h+path)
			}
		}
	}
	return names
}

func (f *File) auths() (*object, error) {
	auths := &object{}
	if err := f.top.get("auths", auths); err != nil {
		return nil, fmt.Errorf("auths of %s: %w", f.path, err)
	}
	return auths, nil
}

// Save writes the file atomically, readable only by its owner.
func (f *File) Save() error {
	raw, err := marshal(f.top)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "\t"); err != nil {
		return err
	}
	out.WriteByte('\n')
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return fileutil.WriteFile(context.Background(), f.path, fileutil.PrivateMode, out.Bytes())
}
