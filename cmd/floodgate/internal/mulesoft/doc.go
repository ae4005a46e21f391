// Package mulesoft translates rate limiting policies of MuleSoft's gateways, as the
// YAML files of Flex Gateway in local mode have them, into policy files of
// Floodgate. The fields that it reads are those of MuleSoft's documentation as of
// November 2026.
package mulesoft
