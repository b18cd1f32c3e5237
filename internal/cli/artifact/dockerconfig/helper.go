package dockerconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
)

// Store passes credentials to a helper, a program named docker-credential-HELPER.
func Store(ctx context.Context, helper, server, user, secret string) error {
	in, err := json.Marshal(struct{ ServerURL, Username, Secret string }{server, user, secret})
	if err != nil {
		return err
	}
	return run(ctx, helper, "store", in)
}

// Erase removes the credentials for a server from a helper.
func Erase(ctx context.Context, helper, server string) error {
	return run(ctx, helper, "erase", []byte(server))
}

// run runs a helper. The error contains the output of the helper, but not its input.
func run(ctx context.Context, helper, verb string, in []byte) error {
	if strings.ContainsAny(helper, `/\`) {
		return fmt.Errorf("the credential helper %q is not a valid name", helper)
	}
	program := "docker-credential-" + helper
	cmd := exec.CommandContext(ctx, program, verb) // The program is configured by the user.
	cmd.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %.200q", program, verb, err, strings.TrimSpace(said.String()))
	}
	return nil
}
