package cloudidentity

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/smithy-go/aws-http-auth/credentials"
	"github.com/aws/smithy-go/aws-http-auth/sigv4"
)

// amazonTargets are the names of GetAuthorizationToken in the APIs of Amazon ECR, by service.
var amazonTargets = map[string]string{
	"ecr":        "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken",
	"ecr-public": "SpencerFrontendService.GetAuthorizationToken",
}

// amazonEndpoints are the variables that replace an endpoint of AWS, by service (AWS SDKs and Tools Reference Guide,
// "Service-specific endpoints").
var amazonEndpoints = map[string]string{
	"ecr": "AWS_ENDPOINT_URL_ECR", "ecr-public": "AWS_ENDPOINT_URL_ECR_PUBLIC", "sts": "AWS_ENDPOINT_URL_STS",
}

// amazonEndpoint returns the endpoint of a service.
func amazonEndpoint(service, otherwise string) string {
	configured := cmp.Or(os.Getenv(amazonEndpoints[service]), os.Getenv("AWS_ENDPOINT_URL"))
	return strings.TrimSuffix(cmp.Or(configured, otherwise), "/") + "/"
}

// amazonToken returns a token of Amazon ECR (Amazon ECR API Reference, "GetAuthorizationToken").
func (c clients) amazonToken(ctx context.Context, r registry) (token, error) {
	creds, err := c.amazonCredentials(ctx, r.region)
	if err != nil {
		return token{}, err
	}
	body := []byte("{}")
	endpoint := amazonEndpoint(r.service, r.endpoint)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return token{}, err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", amazonTargets[r.service])
	hash := sha256.Sum256(body)
	if err := sigv4.New().SignRequest(&sigv4.SignRequestInput{
		Request: req, PayloadHash: hash[:], Credentials: creds, Service: r.service, Region: r.region, Time: c.now(),
	}); err != nil {
		return token{}, err
	}
	raw, err := send(c.public, req)
	if err != nil {
		return token{}, err
	}
	return ecrToken(raw)
}

// ecrToken parses a response with one token: in a list for private registries, and by itself for the public one.
func ecrToken(raw []byte) (token, error) {
	var answer struct {
		AuthorizationData json.RawMessage `json:"authorizationData"`
	}
	type authorization struct {
		AuthorizationToken string  `json:"authorizationToken"`
		ExpiresAt          float64 `json:"expiresAt"`
	}
	err := json.Unmarshal(raw, &answer)
	all := make([]authorization, 1)
	if json.Unmarshal(answer.AuthorizationData, &all[0]) != nil {
		err = errors.Join(err, json.Unmarshal(answer.AuthorizationData, &all))
	}
	if err != nil || len(all) == 0 {
		return token{}, errors.New("the response of Amazon ECR is not the expected JSON")
	}
	plain, err := base64.StdEncoding.DecodeString(all[0].AuthorizationToken)
	user, password, ok := strings.Cut(string(plain), ":")
	if err != nil || !ok {
		return token{}, errors.New("the response of Amazon ECR contains no token")
	}
	return token{user, password, time.Unix(int64(all[0].ExpiresAt), 0)}, nil
}

// amazonCredentials returns the credentials of the first identity that the environment, the configuration of the AWS
// CLI or the machine contains, in the order of the AWS SDKs.
func (c clients) amazonCredentials(ctx context.Context, region string) (credentials.Credentials, error) {
	switch {
	case os.Getenv("AWS_ACCESS_KEY_ID") != "" && os.Getenv("AWS_SECRET_ACCESS_KEY") != "":
		return credentials.Credentials{
			AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
		}, nil
	case os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" && os.Getenv("AWS_ROLE_ARN") != "":
		return c.amazonWebIdentity(ctx, region)
	}
	const missing = "the environment contains no AWS_ACCESS_KEY_ID and no AWS_ROLE_ARN"
	why := missing
	if out, installed, err := run(ctx, "aws", "configure", "export-credentials", "--format", "process"); installed {
		creds, err := amazonKeys(out, err)
		if err == nil {
			return creds, nil
		}
		why = fmt.Sprintf("%s, %v", missing, err)
	}
	source := c.amazonInstance
	if containerAddress() != "" {
		source = c.amazonContainer
	}
	creds, err := source(ctx)
	if err != nil {
		err = fmt.Errorf("%s, and %w", why, err)
	}
	return creds, err
}
