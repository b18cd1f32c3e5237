package apiserver

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// User returns the name that the API server has for the user of a client.
func User(ctx context.Context, c client.Client) (string, error) {
	self := &authenticationv1.SelfSubjectReview{}
	err := c.Create(ctx, self)
	return self.Status.UserInfo.Username, err
}
