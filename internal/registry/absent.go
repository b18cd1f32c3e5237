package registry

import (
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
)

// absentRepository is the repository for which the responses for repositories are made that do not exist, or that a client may
// not read. No client can create it.
const absentRepository = "none"

// newAbsent returns a registry without content. It serves the requests for repositories that do not exist and the requests for
// repositories that a client may not read, so their responses do not differ.
func newAbsent() *olareg.Server {
	no, readOnly := false, true
	return olareg.New(config.Config{
		Storage: config.ConfigStorage{StoreType: config.StoreMem, ReadOnly: &readOnly},
		API:     config.ConfigAPI{PushEnabled: &no, DeleteEnabled: &no},
	})
}
