/** What an engine without tables shows: how to make the first one. */

import { href } from "../router";
import { useStore } from "../store";
import { refreshTables, session } from "../session";

export function Welcome() {
  const found = useStore(session);
  const target = found?.target ?? "http://127.0.0.1:8000";
  const address = target.includes("://") ? target : location.origin;
  return (
    <div class="over">
      <div class="empty wide">
        <h2>There are no tables yet</h2>
        <p>
          <a class="button primary" href={href(["new-table"])}>Make the first one</a>
        </p>
        <p>Or from a terminal; it appears here at once.</p>
        <pre>
          isotone create {address} Orders customer placed_at{"\n"}isotone put {address} Orders{" "}
          {"'{\"customer\": \"ann\", \"placed_at\": \"2026-01-11\", \"total\": 12.5}'"}
        </pre>
        <p>Or from any AWS SDK, with this endpoint:</p>
        <pre>boto3.resource("dynamodb", endpoint_url="{address}", region_name="us-east-1")</pre>
        <button onClick={() => void refreshTables()}>Look again</button>
      </div>
    </div>
  );
}
