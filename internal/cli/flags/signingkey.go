package flags

import (
	"context"
	"errors"
	"os"

	"github.com/xpkg-dev/xpkg/internal/signing"
)

// ReadSigningKey reads the private key in a file, with the password in the environment.
func ReadSigningKey(ctx context.Context, file string) (*signing.Key, error) {
	text, err := ReadFile(ctx, "the private key", file)
	if err != nil {
		return nil, err
	}
	return signing.ReadKey(text, func() (string, error) {
		password, ok := os.LookupEnv("COSIGN_PASSWORD")
		if !ok {
			return "", errors.New("it is encrypted, and COSIGN_PASSWORD is not set")
		}
		return password, nil
	})
}
