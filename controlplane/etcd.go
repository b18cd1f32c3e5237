package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

// The sockets of etcd lie in its folder, which only the owner may enter, and which
// is the working directory of the process: the path of a socket has a limit of 107
// bytes on Linux, and a data directory may be deeper than that.
const (
	clientSocket = "client.sock"
	peerSocket   = "peer.sock"
	etcdEndpoint = "unix://" + clientSocket
)

// enterEtcdFolder makes the folder the working directory and removes the sockets
// of a process that was killed; the lock of the data directory proves that it is
// gone.
func enterEtcdFolder(folder string) error {
	if err := os.Chdir(folder); err != nil {
		return err
	}
	for _, socket := range []string{clientSocket, peerSocket} {
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// startEtcd starts a database of one member that listens on unix sockets only, and
// waits until it has elected itself.
func startEtcd(ctx context.Context, folder string, throwaway bool) (*embed.Etcd, error) {
	if err := enterEtcdFolder(folder); err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Name = "xpkg"
	config.Dir = "data"
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Host: clientSocket}}
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: peerSocket}}
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogLevel = "error"
	config.EnableGRPCGateway = false
	config.UnsafeNoFsync = throwaway
	// A single member also waits for its election timeout before it elects itself, up to a second by default. It has
	// no other member whose messages could be late.
	config.TickMs, config.ElectionMs = 50, 250
	config.WatchProgressNotifyInterval = bookmarkPeriod
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		etcd.Close()
		return nil, fmt.Errorf("etcd ended: %w", err)
	case <-ctx.Done():
		etcd.Close()
		return nil, errStopped
	}
}
