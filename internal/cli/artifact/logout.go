package artifact

import (
	"cmp"
	"context"
	"errors"

	"github.com/xpkg-dev/xpkg/internal/cli/artifact/dockerconfig"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
)

// LogoutCmd implements `xpkg logout`.
type LogoutCmd struct {
	Registry string `arg:"" optional:"" help:"Registry to log out of, for example ghcr.io. Default is docker.io."`
}

// Run removes the credentials for a registry.
func (c *LogoutCmd) Run(env *terminal.Env) error {
	registry, err := flags.ParseHost(cmp.Or(c.Registry, flags.DefaultRegistry))
	if err != nil {
		return err
	}
	found, err := forget(env.Context, serverKey(registry))
	if err != nil {
		return ErrDockerConfig.New(err, "cannot remove the credentials for %s", registry)
	}
	text := "Logged out of %s.\n"
	if !found {
		text = "There were no credentials for %s.\n"
	}
	return env.Say(text, registry)
}

func forget(ctx context.Context, server string) (bool, error) {
	path, err := dockerconfig.Path()
	if err != nil {
		return false, err
	}
	file, err := fileutil.Await(ctx, func() (*dockerconfig.File, error) { return dockerconfig.Load(path) })
	if err != nil {
		return false, err
	}
	helper, err := file.Helper(server)
	if err != nil {
		return false, err
	}
	found, err := file.Remove(server)
	if err != nil || !found {
		return false, err
	}
	if helper != "" {
		err = dockerconfig.Erase(ctx, helper, server)
	}
	return true, errors.Join(err, file.Save())
}
