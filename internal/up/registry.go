package up

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/olareg/olareg/types"
)

// registryGrace is how long a stop waits for requests to the registry.
const registryGrace = time.Second

// A registry serves the images of the data directory.
type registry struct {
	server  *http.Server
	images  *olareg.Server
	log     *os.File
	address string
	done    chan struct{}
	err     error // to be read after done is closed
}

// startRegistry serves on a port that is open already.
func startRegistry(d *directory, listener net.Listener) (*registry, error) {
	log, err := openLog(d.logs(), "registry.log")
	if err != nil {
		return nil, err
	}
	yes := true
	images := olareg.New(config.Config{
		Storage: config.ConfigStorage{StoreType: config.StoreDir, RootDir: d.registry()},
		API: config.ConfigAPI{
			DeleteEnabled: &yes,
			Blob:          config.ConfigAPIBlob{DeleteEnabled: &yes},
		},
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	r := &registry{
		server:  &http.Server{Handler: guard(images), ReadHeaderTimeout: 5 * time.Second},
		images:  images,
		log:     log,
		address: listener.Addr().String(),
		done:    make(chan struct{}),
	}
	go func() {
		defer close(r.done)
		r.err = r.server.Serve(listener)
	}()
	return r, nil
}

// stop ends the registry. Requests that take longer than the grace are cut off: an
// upload that did not end is no image.
func (r *registry) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), registryGrace)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = r.server.Close()
	}
	<-r.done
	return errors.Join(err, found(r.images.Close()), r.log.Close())
}

// found leaves out of what went wrong that a repository is not there: the library looks
// once more at each that somebody has asked for, also in vain.
func found(err error) error {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		var left []error
		for _, e := range several.Unwrap() {
			left = append(left, found(e))
		}
		return errors.Join(left...)
	}
	if errors.Is(err, types.ErrNotFound) {
		return nil
	}
	return err
}
