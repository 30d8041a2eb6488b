// Where answers come from when “rankwise explore” serves the page: its server, so the library itself.

export const ORIGIN = "Every number is computed by rankwise on this machine.";

// The answer to a request, {found}, or what went wrong, {error}.
export async function answerTo(request) {
  try {
    const reply = await fetch("solve", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(request),
    });
    const found = await reply.json();
    return reply.ok ? { found } : { error: found.error };
  } catch {
    return {
      error: "The server does not answer. Start it again with “rankwise explore”, and open the address it prints.",
    };
  }
}
